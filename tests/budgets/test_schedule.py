"""What a run does next, what that still needs, and whether it keeps to its plan."""

from datetime import timedelta
from typing import Any

import pytest

from budgets.events import Asked, Fired, Overridden, Status
from budgets.plan import Calibration, Caps, Configuration, Window
from budgets.schedule import (
    blocking_batches,
    left_for_the_verdict,
    left_to_compare,
    next_action,
    pace,
)
from budgets.state import RunState
from tests.budgets.conftest import Story, confirmed_plan, make_story, settled, told_of
from tests.simulation.session import BEGAN

NAN = Status.NAN
GAIN = 8 * (0.98,)


@pytest.mark.parametrize(
    "fields",
    [
        {"winner": 8 * (1.0,)},
        {"winner": (NAN, NAN, *6 * (0.98,))},
        {"winner": GAIN, "generations": 3 * ((1.0, 1.1, 1.2, NAN),)},
        {
            "finalists": {"average": 1.1, "best candidate 1": 0.9},
            "winner": GAIN,
            "best": "best candidate 1",
        },
    ],
    ids=["signal", "sanity", "stability", "persistence"],
)
def test_the_long_run_is_only_for_what_is_a_go_here(fields: Any) -> None:
    assert next_action(told_of(**fields).state) == "decide"


@pytest.mark.parametrize(("seconds", "step"), [(152.0, "long_run"), (151.9, "decide")])
def test_a_long_run_that_no_cap_has_room_for_is_left_out(seconds: float, step: str) -> None:
    """43 evaluations have taken 2 s each; three of the long run 8 s, the last reserves 42 s."""
    caps = Caps(evaluations=12, device_hours=seconds / 3600)
    assert next_action(told_of(confirmed_plan(caps=caps), winner=GAIN).state) == step


def test_after_the_search_a_reference_that_is_late_is_waited_for() -> None:
    """It fills slots that the search leaves idle, and these may have been too few."""
    story, arm = Story(confirmed_plan()), Configuration(name="average", point=(0.4, 0.6))
    late = Asked(comparison="reference", configurations=(arm,), seeds=((50, 51),))
    story.say(late)
    story.finish()
    story.compare("finalists", [arm], [{11: 0.98}])
    assert next_action(story.state) == "reference"
    assert [batch.comparison for batch in blocking_batches(story.state)] == ["reference"]


# What it still takes


def test_the_verdict_is_set_aside_from_the_start() -> None:
    """Reference 11 + 5, finalists 12, winner 8, long run 4 of four times as long; 2 s each."""
    story = Story(confirmed_plan())
    assert left_to_compare(story.state) == [(16, 16), (12, 12), (8, 8), (4, 16)]
    device_hours, hours = left_for_the_verdict(story.state)
    assert device_hours == pytest.approx((52 * 2 + 12) / 3600)  # and a last reservation
    assert hours == pytest.approx(((8 + 6 + 4) * 2 + 2 * 8 + 12) / 3600)


# How it keeps to its plan

HOUR = 3600.0


def timed(**fields: Any) -> Story:
    """P = 4, G = 2 on two slots, calibrated at 2 s; 12 s are reserved for an attempt."""
    story = make_story(**fields)
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


def test_half_way_it_says_how_long_it_will_take_and_until_when() -> None:
    found = pace(in_pairs(timed(), 3.0))
    assert found.estimated_hours is not None
    assert found.estimated_hours * HOUR == pytest.approx(4.0)  # two rounds of 2 s
    assert found.elapsed_hours * HOUR == pytest.approx(6.0)
    assert found.accuracy == pytest.approx(100 * 4 / 6)
    assert not found.is_out_of_date  # it took too short a time to tell
    assert found.remaining_hours is not None
    assert found.remaining_hours * HOUR == pytest.approx(6.0)  # two rounds of what was seen
    assert found.eta == BEGAN + timedelta(seconds=12)
    assert found.progress == 0.5
    assert found.evals_per_hour == pytest.approx(4 / 6 * HOUR)


@pytest.mark.parametrize(
    ("seconds", "on_track"), [(2000.0, True), (2300.0, True), (2500.0, False), (1000.0, True)]
)
def test_without_a_window_a_run_is_off_track_when_its_plan_was_too_good(
    seconds: float, on_track: bool
) -> None:
    slow = Calibration(assumed_seconds=2000.0)
    assert pace(in_pairs(timed(calibration=slow), seconds)).on_track == on_track


# After two rounds of 2 s, two rounds are left; the last attempt must find 12 s.


@pytest.mark.parametrize(("seconds", "on_track"), [(18.1, True), (17.9, False)])
def test_a_window_must_leave_the_last_attempts_whole_limit(seconds: float, on_track: bool) -> None:
    window = Window(hours=seconds / HOUR, margin_seconds=0)
    for caps in (Caps(evaluations=8, window=window), Caps(evaluations=8, hours=seconds / HOUR)):
        assert pace(in_pairs(timed(caps=caps), 2.0)).on_track == on_track


def test_generations_and_comparisons_are_expected_one_after_another() -> None:
    """On two devices, of 2 s each: 13 generations of 3, the reference's 11, the finalists' 6."""
    story = told_of(generations=13 * ((1.0, 1.1, 1.2),), finalists={"average": 0.98, "mean": 0.99})
    story.elapsed_ms = 100_000
    story.say(Overridden(rule="crash_rate", generation=0, reason="a record that shows the time"))
    found = pace(story.state)
    assert found.estimated_hours is not None
    assert found.estimated_hours * HOUR == pytest.approx(2 * (13 * 2 + 6 + 3))
    assert found.evals_per_hour == pytest.approx((13 * 3 + 11 + 6) / 100 * HOUR)


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
