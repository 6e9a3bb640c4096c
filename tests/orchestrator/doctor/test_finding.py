"""Findings, what they amount to, and how they are shown."""

import pytest

from orchestrator.doctor.finding import Finding, Section, as_dict, counted, nothing_is_missing
from orchestrator.doctor.text import to_markdown

OK = Finding("a", "ok", "seen a")
ABSENT = Finding("b", "absent", "no b", "get b")
MISSING = Finding("c", "missing", "no c", "get c")
UNKNOWN = Finding("d", "unknown", "d?", "look at d")


@pytest.mark.parametrize(
    ("findings", "ready"),
    [((OK,), True), ((OK, ABSENT, UNKNOWN), True), ((OK, MISSING), False), ((), True)],
)
def test_only_what_is_missing_makes_a_run_impossible(
    findings: tuple[Finding, ...], ready: bool
) -> None:
    assert nothing_is_missing([Section("x", (OK,)), Section("y", findings)]) is ready


@pytest.mark.parametrize("state", ["missing", "unknown"])
def test_what_is_not_ok_says_how_it_is_mended(state: str) -> None:
    with pytest.raises(AssertionError, match="how is it mended"):
        Finding("a", state, "seen")  # type: ignore[arg-type]


def test_the_document_has_every_finding_and_what_they_amount_to() -> None:
    sections = (Section("x", (OK, MISSING)), Section("y", (UNKNOWN,)))
    document = as_dict(sections)
    assert document["ready"] is False
    assert document["counts"] == counted(sections)
    assert counted(sections) == {"ok": 1, "absent": 0, "missing": 1, "unknown": 1}
    assert document["sections"][0]["findings"][1] == {
        "item": "c",
        "state": "missing",
        "seen": "no c",
        "mend": "get c",
    }


def test_what_is_to_be_done_comes_last_and_what_is_needed_first() -> None:
    text = to_markdown((Section("x", (UNKNOWN, ABSENT, MISSING, OK)),))
    order = ["## x", "## To mend", "get c", "look at d", "## If you want it", "get b", "Not ready"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.rstrip().endswith("Not ready: 1 ok, 1 absent, 1 missing, 1 unknown.")


def test_one_command_for_two_findings_is_said_once() -> None:
    text = to_markdown((Section("x", (MISSING, Finding("e", "unknown", "?", "get c"))),))
    assert "- c (missing), e (unknown): get c" in text
    assert text.count("get c") == 1


def test_nothing_that_was_seen_is_markup() -> None:
    text = to_markdown((Section("x", (Finding("a|b", "ok", "<b>`x`\x1b[31m"),)),))
    assert "\x1b" not in text
    assert r"a\|b" in text
    assert r"\<b>\`x\`" in text


def test_with_nothing_missing_it_says_so() -> None:
    assert "Nothing that a run needs is missing: 1 ok" in to_markdown((Section("x", (OK,)),))
