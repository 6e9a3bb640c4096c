"""The commands of docs/objective_nanochat.md, on a nanochat that trains nothing."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).parents[3] / "docs/objective_nanochat.md"
LOOKING = ("init", "explain", "dry-run", "plan")


def commands() -> list[str]:
    """Every command of ours, in order."""
    blocks = re.findall(r"^```\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    return [
        line.removeprefix("orchestrator ") for line in lines if line.startswith("orchestrator ")
    ]


def follow(some: list[str], command: Callable[..., Any]) -> dict[str, str]:
    """What each of them answers, all of which end well."""
    answers = {}
    for one in some:
        answer = command(*shlex.split(one))
        assert answer.code == 0, f"{one}: {answer.err}"
        answers[one] = answer.out
    return answers


def test_the_tutorial_begins_with_what_starts_nothing(
    nanochat_home: Path, command: Callable[..., Any]
) -> None:
    looking = [one for one in commands() if one.startswith(LOOKING)]
    assert len(looking) == len(LOOKING)
    answers = follow(looking, command)
    assert "scripts.base_train" in answers["dry-run nanochat.toml"]


@pytest.mark.slow  # some 190 evaluations; the one above is its quick sibling
def test_the_tutorial_leads_from_a_template_to_a_longer_training(
    nanochat_home: Path, command: Callable[..., Any]
) -> None:
    answers = follow(commands(), command)
    assert "Confirmed: Go" in answers["best"]
    flags = shlex.split(answers["best --flags"])
    assert [flag.partition("=")[0] for flag in flags][:2] == ["--embedding-lr", "--unembedding-lr"]
    assert "better" in answers["best --train --times 10"]
