"""What a run did cost, in plain words whose counts add up."""

from pathlib import Path
from typing import Any

from budgets.events import Concluded, Status
from budgets.report.model import budget_report
from budgets.terms import Caps
from budgets.verdict.decision import decide
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.cost import cost
from tests.budgets.conftest import Story, confirmation, told_of
from tests.orchestrator.report.conftest import in_two_knobs, judged

GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)
KEPT = ((1.0, 1.0), (0.98, 0.98))
NO_GAIN = tuple(0.995 + noise for noise in (0.02, -0.02, 0.015, -0.015, 0.01, -0.01, 0.0, 0.0))


def said(story: Story) -> str:
    return cost(
        Asked(story.state, budget_report(story.state), Path("artifacts/cmaes/phase1/judged"))
    )


def planned(**fields: Any) -> Story:
    return Story(in_two_knobs(**fields))


def test_the_parts_of_all_evaluations_add_up_to_them() -> None:
    story = judged(winner=GAIN, rung=KEPT)
    accounts = story.state.accounts
    begins = f"{accounts.evaluations + accounts.apart} evaluations ({accounts.evaluations} of the"
    assert said(story).startswith(begins)


def test_evaluations_that_only_a_go_needs_are_told_apart_from_those_missing() -> None:
    plan = in_two_knobs(confirmation=confirmation(controls=()))
    story = told_of(plan, winner=NO_GAIN)
    fired, verdict = decide(story.state)
    story.say(*fired, verdict, Concluded(reason=verdict.evidence))
    assert "31 to compare on fresh seeds; 4 more with 4 x FLOPs only after a Go)" in said(story)
    assert "31 of at most 45 to compare on fresh seeds)" in said(judged(winner=NO_GAIN))


def test_what_failed_is_counted_and_no_share_of_time() -> None:
    story = planned()
    story.ask()
    story.evaluate(0, 1.0)
    story.evaluate(1, Status.ERROR)
    assert "; 1 failed" in said(story)
    assert "%" not in said(story)


def test_a_cap_says_what_is_left_and_no_cap_is_not_spoken_of() -> None:
    assert "cap" not in said(planned())
    capped = planned(caps=Caps(evaluations=12, device_hours=2.0))
    assert "(2 h 00 min left)" in said(capped)
