"""What a checklist answers, and why."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.planning.checklist import Facts, Item, Need, checklist

READY = Facts(
    smoke=False,
    limit_seconds=60.0,
    longest_seconds=10.0,
    attempts=24,
    timeouts=0,
    devices=2,
    at_once=8,
    idle_share=0.05,
    origin="measured",
    samples=8,
    age_days=1.0,
    hours=2.0,
    hours_allowed=3.0,
    alive=("a", "b"),
    needs=(Need("--max-hours", 2.0, 3.0, "hours"),),
    disk_needed=1e6,
    disk_free=1e9,
    disk_measured=True,
)

PARALLEL, PILOT = "Is it as parallel as its devices?", "Does a pilot confirm the time"
MEASURE = "nothing was measured: python -m orchestrator calibrate"


def answer(question: str, **facts: Any) -> Item:
    return next(i for i in checklist(replace(READY, **facts)) if i.question.startswith(question))


def test_a_run_that_is_ready_passes_every_question() -> None:
    items = checklist(READY)
    assert len(items) == 8
    assert {item.verdict for item in items} == {"pass"}


def test_what_nobody_knows_is_unknown_and_never_passed() -> None:
    items = checklist(Facts(smoke=True, limit_seconds=600.0, at_once=8, devices=2))
    unknown = [item for item in items if item.verdict == "unknown"]
    passed = [item.question for item in items if item.verdict == "pass"]
    assert len(unknown) == 5
    assert passed == ["Smoke test or full run?", PARALLEL, "Does it fit under every cap?"]


@pytest.mark.parametrize(
    ("question", "facts", "verdict", "why"),
    [
        ("Smoke", {"smoke": True}, "pass", "a smoke test: it decides nothing"),
        ("Is the limit", {"limit_seconds": 9.0}, "fail", "healthy evaluations would be killed"),
        ("Is the limit", {"timeouts": 3}, "fail", "3 of 24 ended there: raise it if they were"),
        ("Is the limit", {"timeouts": 1}, "pass", "60 s, 6.0 x the longest measured; 1 of 24"),
        ("Is the limit", {"longest_seconds": None}, "unknown", f"60 s; {MEASURE}"),
        (PARALLEL, {"devices": 9}, "fail", "8 evaluations at a time on 9: 1 never have one"),
        (PARALLEL, {"idle_share": 0.36}, "fail", "36% of the time idle: fewer devices cost less"),
        (PARALLEL, {"idle_share": None, "devices": 5}, "pass", "on 5 leave 2 idle in the last"),
        (PARALLEL, {"idle_share": None, "at_once": 9, "devices": 8}, "fail", "leave 7 idle"),
        (PILOT, {"origin": "assumed"}, "fail", "somebody's word, assumed until"),
        (PILOT, {"origin": "prior"}, "fail", "an estimate, assumed until"),
        (PILOT, {"origin": "none"}, "unknown", MEASURE),
        (PILOT, {"samples": 2}, "fail", "measured on 2 seeds, 24 hours ago: 3 are the least"),
        (PILOT, {"drift": 1.2, "drifted": "r"}, "fail", "r took 1.20 x that: python -m orch"),
        (PILOT, {"drift": 0.9, "drifted": "r"}, "pass", "r took 0.90 x that"),
        (PILOT, {"age_days": 31.0}, "unknown", "31 days ago, and nothing ran since"),
        (PILOT, {"age_days": 31.0, "drift": 1.0, "drifted": "r"}, "pass", "31 days ago; r took"),
        ("Is the wall", {"hours": 3.5}, "fail", "3 h 30 min must be free, 3 h 00 min are there"),
        ("Is the wall", {"hours_allowed": None}, "unknown", "may take: --window or --max-hours"),
        ("Is the wall", {"hours": None}, "unknown", MEASURE),
        ("Are the knobs", {"dead": ("c",)}, "fail", "2 of 3 moved the score when checked; c did"),
        ("Are the knobs", {"untried": ("c",)}, "unknown", "2 of 3 moved the score when checked"),
        ("Are the knobs", {"alive": (), "untried": ("a", "b")}, "unknown", "none was checked: "),
        ("Does it fit", {"needs": ()}, "pass", "there is none but the tier's evaluations"),
        ("Is there room", {"disk_free": 1e5}, "fail", "977 KiB of 97.7 KiB free"),
        ("Is there room", {"disk_measured": False}, "pass", "977 KiB (assumed) of 954 MiB free"),
        ("Is there room", {"disk_free": None}, "unknown", "nobody can tell what is free there"),
    ],
)
def test_an_answer_gives_its_reason(
    question: str, facts: dict[str, Any], verdict: str, why: str
) -> None:
    found = answer(question, **facts)
    assert found.verdict == verdict
    assert why in found.why


def test_one_cap_that_is_too_low_fails_all_of_them() -> None:
    low, fits, open_ = (
        Need("--max-cost", 5.0, 3.0, ""),
        Need("--max-hours", 1.0, 3.0, "hours"),
        Need("--window", None, 3.0, "hours"),
    )
    assert answer("Does it fit", needs=(fits, low, open_)).verdict == "fail"
    assert answer("Does it fit", needs=(fits, open_)).verdict == "unknown"
    found = answer("Does it fit", needs=(fits, low))
    assert found.why == "--max-hours: 1 of 3 hours; --max-cost: 5 of 3"
