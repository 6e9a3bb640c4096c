"""How far an evaluation is kept apart."""

from collections.abc import Mapping

import pytest

from orchestrator.doctor.asking import NoAnswerError
from orchestrator.doctor.finding import Finding
from orchestrator.doctor.isolation import level, tree

ALL = {"adopted": True, "memory": True, "marked": True, "ended": True}


def states(found: tuple[Finding, ...]) -> list[str]:
    return [one.state for one in (*found, level(found))]


def silent() -> Mapping[str, bool]:
    raise NoAnswerError("ended with 1: OSError")


def test_a_tree_that_comes_back_and_ends_is_the_level() -> None:
    found = tree(lambda: ALL, "linux")
    assert states(found) == ["ok", "ok", "ok"]
    assert level(found).seen.startswith("process tree: it ends whole")


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ("adopted", "PR_SET_CHILD_SUBREAPER"),
        ("ended", "could not be ended"),
        ("marked", "/proc/PID/environ"),
    ],
)
def test_what_a_supervisor_lacks_is_named(lacking: str, words: str) -> None:
    found = tree(lambda: {**ALL, lacking: False}, "linux")
    assert states(found) == ["missing", "ok", "missing"]
    assert words in found[0].seen


def test_memory_that_cannot_be_seen_cannot_be_limited() -> None:
    found = tree(lambda: {**ALL, "memory": False}, "linux")
    assert states(found) == ["ok", "missing", "missing"]


def test_what_could_not_be_tried_is_unknown() -> None:
    found = tree(silent, "linux")
    assert states(found) == ["unknown", "unknown"]
    assert "OSError" in found[0].seen


def test_elsewhere_than_on_linux_an_orphan_may_live_on_and_that_is_said() -> None:
    found = tree(silent, "darwin")
    assert states(found) == ["absent", "ok", "ok"]
    assert "may live on" in level(found).seen


def test_no_level_is_called_a_sandbox() -> None:
    for found in (tree(lambda: ALL, "linux"), tree(silent, "linux"), tree(silent, "darwin")):
        assert "no sandbox" in level(found).seen
