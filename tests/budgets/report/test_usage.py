"""What the slots of a run's sessions were doing."""

from typing import TYPE_CHECKING

import pytest

from budgets.events import Late, Status
from budgets.report.usage import idle_hours, slot_hours, wasted_hours
from budgets.terms import Calibration, Parent

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, MakeStory, Story

HOUR = 3_600_000


def test_slots_are_there_while_their_session_is_open(story: "Story") -> None:
    story.elapsed_ms = HOUR
    story.ask()
    assert slot_hours(story.state) == 2.0  # two slots


def test_every_session_counts_with_its_own_slots(story: "Story") -> None:
    story.elapsed_ms = HOUR
    story.ask()
    story.open()
    story.elapsed_ms = HOUR // 2
    story.evaluate(0, charged_ms=HOUR // 2)
    assert slot_hours(story.state) == 3.0
    assert idle_hours(story.state) == 2.5


def test_what_led_to_the_run_is_neither_slots_nor_use_of_it(
    make_story: "MakeStory", make_plan: "MakePlan"
) -> None:
    calibration = make_plan().calibration
    assert calibration is not None
    paid = Calibration(samples=calibration.samples, charged_ms=HOUR, open_ms=HOUR)
    parent = Parent(run_id="before", head="h", device_ms=HOUR, open_ms=HOUR)
    story = make_story(calibration=paid, parent=parent)
    story.elapsed_ms = HOUR
    story.ask()
    story.evaluate(0, charged_ms=HOUR // 4)
    assert slot_hours(story.state) == 2.0
    assert idle_hours(story.state) == 1.75


def test_slots_are_never_less_than_idle(story: "Story") -> None:
    """What an attempt is charged may go beyond the last moment that the ledger knows of."""
    story.ask()
    story.evaluate(0, charged_ms=HOUR)
    assert idle_hours(story.state) == 0.0


def test_what_gave_no_score_is_wasted(story: "Story") -> None:
    story.ask()
    for outcome in (Status.LOST, Status.CANCELLED, 1.0):
        story.evaluate(0, outcome, charged_ms=HOUR)
    story.evaluate(1, Status.NAN, charged_ms=HOUR)
    assert wasted_hours(story.state) == pytest.approx(3.0)


def test_panels_waste_too(tell: "Callable[..., Story]") -> None:
    healthy, sick = tell(), tell(finalists={"average": (Status.NAN, Status.OOM, 1.0)})
    assert wasted_hours(healthy.state) == 0.0
    assert wasted_hours(sick.state) == pytest.approx(4.0 / 3600)


def test_a_run_that_was_not_opened_had_no_slots(make_story: "MakeStory") -> None:
    state = make_story().state
    assert slot_hours(state) == idle_hours(state) == wasted_hours(state) == 0.0


def test_what_came_late_is_wasted_beyond_what_was_charged_before(story: "Story") -> None:
    story.ask()
    story.evaluate(0, Status.LOST, charged_ms=HOUR)
    late = Late(
        generation=0,
        candidate=0,
        seed=5,
        attempt=1,
        status=Status.OK,
        score=1.0,
        seconds=2.0,
        charged_ms=HOUR // 2,
    )
    story.say(late)
    assert wasted_hours(story.state) == 1.5
