"""Whether a run keeps to its plan, by the clocks of its records."""

from datetime import timedelta
from typing import Any

import pytest

from budgets.events import Fired, Overridden
from budgets.pace import pace, timing
from budgets.plan import Caps, Window
from budgets.state import RunState
from tests.budgets.conftest import BEGAN, Story, make_story, settled, told_of

HOUR = 3600.0


def timed(startup: float = 5.0, **fields: Any) -> Story:
    """P = 4, G = 2 on two slots, calibrated at 2 s; 12 s are reserved for an attempt."""
    story = make_story(**fields)
    turn(story, startup)
    story.ask()
    return story


def turn(story: Story, seconds: float) -> None:
    story.elapsed_ms += round(1000 * seconds)


def in_pairs(story: Story, seconds: float) -> RunState:
    """Each two at once take so long."""
    for pair in ((0, 1), (2, 3)):
        reservations = [story.reserve(candidate) for candidate in pair]
        turn(story, seconds)
        for one in reservations:
            took = {"seconds": seconds, "charged_ms": round(1000 * seconds)}
            story.say(settled(one, 1.0 + one.candidate, **took))
    return story.state


def test_a_run_that_takes_what_was_planned_is_all_accurate() -> None:
    found = timing(in_pairs(timed(startup=7.0), 2.0))
    assert found is not None
    assert found.estimated_hours * HOUR == pytest.approx(4.0)  # two rounds of 2 s
    assert found.actual_hours * HOUR == pytest.approx(4.0)
    assert found.startup_hours * HOUR == pytest.approx(7.0)
    assert found.accuracy == pytest.approx(100)
    assert found.is_good


def test_nothing_is_estimated_before_an_evaluation_is_over_or_without_a_time() -> None:
    assert timing(timed().state) is None
    assert timing(in_pairs(timed(calibration=None), 2.0)) is None


# Live


def test_half_way_it_says_how_long_it_will_take_and_until_when() -> None:
    found = pace(in_pairs(timed(startup=6.0), 3.0))
    assert found.elapsed_hours * HOUR == pytest.approx(12.0)
    assert found.remaining_hours is not None
    assert found.remaining_hours * HOUR == pytest.approx(6.0)  # two rounds of what was seen
    assert found.eta == BEGAN + timedelta(seconds=18)
    assert found.progress == 0.5
    assert found.evals_per_hour == pytest.approx(4 / 6 * HOUR)


@pytest.mark.parametrize(
    ("seconds", "on_track"), [(2.0, True), (2.3, True), (2.5, False), (1.0, True)]
)
def test_without_a_window_a_run_is_off_track_when_its_plan_was_too_good(
    seconds: float, on_track: bool
) -> None:
    assert pace(in_pairs(timed(startup=0.0), seconds)).on_track == on_track


# After 5 s of start-up and two rounds of 2 s, two rounds are left; the last attempt must find 12 s.


@pytest.mark.parametrize(("seconds", "on_track"), [(23.1, True), (22.9, False)])
def test_a_window_must_leave_the_last_attempts_whole_limit(seconds: float, on_track: bool) -> None:
    window = Window(hours=seconds / HOUR, margin_seconds=0)
    for caps in (Caps(evaluations=8, window=window), Caps(evaluations=8, hours=seconds / HOUR)):
        assert pace(in_pairs(timed(caps=caps), 2.0)).on_track == on_track


def test_what_is_compared_beside_the_search_fills_slots_before_it_takes_rounds() -> None:
    """On two devices, of 2 s each: 13 generations of 3 leave 13 slots to the reference's 11; the
    12 of the finalists come after them."""
    story = told_of(generations=13 * ((1.0, 1.1, 1.2),), finalists={"average": 0.98, "mean": 0.99})
    story.elapsed_ms = 100_000
    story.say(Overridden(rule="crash_rate", generation=0, reason="a record that shows the time"))
    found = timing(story.state)
    assert found is not None
    assert found.estimated_hours * HOUR == pytest.approx(2 * (13 * 2 + 6 / 2))
    assert pace(story.state).evals_per_hour == pytest.approx((13 * 3 + 11 + 6) / 100 * HOUR)


def test_generations_that_a_rule_took_away_are_not_to_come() -> None:
    story = told_of(generations=(4 * (1.0,),))
    before = pace(story.state)
    assert before.progress == pytest.approx(15 / (12 + 11 + 12 + 8 + 4 * 4))
    story.say(Fired(rule="patience", generation=0, decision="stop", observed=0, limit=0, facts={}))
    after = pace(story.state)
    assert after.progress == pytest.approx(15 / (4 + 11 + 12 + 8 + 4 * 4))
    assert before.remaining_hours is not None
    assert after.remaining_hours is not None
    rounds = (before.remaining_hours - after.remaining_hours) * HOUR / 2
    assert rounds == pytest.approx(2 * 2)  # two generations of 4 on two devices
