"""A run pauses when nothing can be evaluated, until that is mended."""

from collections.abc import Callable
from typing import Any


def test_the_command_says_what_to_mend_and_the_rule_cannot_be_overridden(
    command: Callable[..., Any], lack: Callable[..., list[str]]
) -> None:
    inline = ("--executor", "inline", "--workers", "1", "--assume-eval-seconds", "1")
    search = ("phase1", "--tier", "min", "--objective", "sphere", *inline)
    lack("gen_0000/cand_0001", "gen_0000/cand_0001")

    answer = command(*search)
    assert answer.code == 3
    assert "SetupError: the text is gone: put it back" in " ".join(answer.out.split())
    assert "--override" not in answer.out
    refused = command(*search, "--override", "setup_failed", "--reason", "never mind")
    assert refused.code == 2
    assert "cannot be overridden" in refused.err
    assert command(*search).code == 3
    assert command(*search).code == 0
