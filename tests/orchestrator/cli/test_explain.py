"""`explain` of a run: what each rule observes there."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from orchestrator.cli.rules_table import rule_rows, rules_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Answer, Command

SPHERE = ("--tier", "min", "--objective", "sphere", "--executor", "inline", "--workers", "1")


def rows(answer: "Answer") -> dict[str, dict[str, Any]]:
    assert answer.code == 0
    return {row["rule"]: row for row in orjson.loads(answer.out)["rules"]}


@pytest.fixture
def fragile(command: "Command") -> "Callable[..., Answer]":
    """A run of tier min half of whose evaluations fail."""
    failing = ("--set", "failure_rate=0.5", "--assume-eval-seconds", "1")
    return lambda *more: command("phase1", *SPHERE, *failing, *more)


def test_a_run_shows_what_each_rule_observes_and_whether_it_fires(
    command: "Command", fragile: "Callable[..., Answer]"
) -> None:
    fragile()
    found = rows(command("explain", "min-sphere-s1", "--json"))
    seen = found["crash_rate"]["seen"]
    assert (seen["fires"], seen["overridden"], seen["limit"]) == (True, False, 0.1)
    assert seen["observed"] > 0.1
    assert "failed" in seen["evidence"]
    assert not found["sustained_nan"]["seen"]["fires"]
    assert found["baseline_failed"]["seen"] is None
    text = command("explain", "min-sphere-s1").out
    assert "Rules of min-sphere-s1" in text
    assert "yes" in text


def test_a_rule_that_is_overridden_is_shown_so(
    command: "Command", fragile: "Callable[..., Answer]"
) -> None:
    fragile()
    fragile("--override", "crash_rate", "--reason", "known")
    answer = command("explain", "min-sphere-s1", "--json")
    seen = rows(answer)["crash_rate"]["seen"]
    if "generation 0 " in seen["evidence"]:
        assert seen["overridden"]
    else:  # the next generation fails on its own
        assert seen["fires"]


def test_a_run_that_is_not_there_is_bad_input(command: "Command") -> None:
    answer = command("explain", "nothing")
    assert (answer.code, "no run 'nothing'" in answer.err) == (2, True)


def test_the_documentation_has_the_table() -> None:
    assert (
        "\n".join(rules_table(rule_rows()))
        in (Path(__file__).parents[3] / "docs/rules.md").read_text()
    )


def test_a_limit_of_the_runs_own_is_shown_with_its_default(
    fragile: "Callable[..., Answer]", command: "Command"
) -> None:
    fragile("--set", "thresholds.crash_count_pause=4")
    found = rows(command("explain", "min-sphere-s1", "--json"))["crash_rate"]
    assert (found["limits"]["crash_count_pause"], found["defaults"]["crash_count_pause"]) == (4, 2)
    assert "`crash_count_pause` 4 (default 2)" in "\n".join(rules_table([found]))
