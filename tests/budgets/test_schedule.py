"""What a run does next, and what that still needs."""

from typing import Any

import pytest

from budgets.events import ComparisonAsked, Status
from budgets.plan import Caps, Configuration
from budgets.schedule import (
    blocking_batches,
    cost_of_the_verdict,
    expected,
    left_for_the_verdict,
    next_action,
    search_is_over,
)
from tests.budgets.conftest import Story, confirmed_plan, told_of

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


def test_without_a_winner_there_is_nothing_to_judge() -> None:
    assert next_action(told_of(finalists={"average": (NAN, NAN, NAN)}).state) == "decide"


def test_after_the_search_a_reference_that_is_late_is_waited_for() -> None:
    """It fills slots that the search leaves idle, and these may have been too few."""
    story, arm = Story(confirmed_plan()), Configuration(name="average", point=(0.4, 0.6))
    late = ComparisonAsked(comparison="reference", configurations=(arm,), seeds=((50, 51),))
    story.say(late)
    story.finish()
    story.compare("finalists", [arm], [{11: 0.98}])
    assert next_action(story.state) == "reference"
    assert [batch.comparison for batch in blocking_batches(story.state)] == ["reference"]


# What it still takes


@pytest.mark.parametrize(
    ("count", "length", "devices", "hours"),
    [
        (4, 4.0, 1, 8 / 3600),
        (4, 4.0, 4, 2 / 3600),
        (5, 5.0, 4, 4 / 3600),  # the fifth in a round of its own
        (4, 16.0, 2, 16 / 3600),  # four times as long each
        (1, 0.25, 4, 0.5 / 3600),
    ],
)
def test_evaluations_take_whole_rounds(
    count: int, length: float, devices: int, hours: float
) -> None:
    calibration = confirmed_plan().calibration
    assert calibration is not None
    needs = expected(count, length, calibration, devices)
    assert needs == pytest.approx((count, length * 2 / 3600, hours))


def test_the_verdict_is_set_aside_from_the_start() -> None:
    """Reference 11 + 5, finalists 12, winner 8, long run 4 of four times as long; 2 s each."""
    story = Story(confirmed_plan())
    needs = left_for_the_verdict(story.state)
    assert needs.evaluations == 16 + 12 + 8 + 4
    assert cost_of_the_verdict(story.state) == 16 + 12 + 8 + 16
    assert needs.device_hours == pytest.approx((52 * 2 + 12) / 3600)  # and a last reservation
    assert needs.hours == pytest.approx(((8 + 6 + 4) * 2 + 2 * 8 + 12) / 3600)


def test_what_is_settled_is_needed_no_more() -> None:
    assert cost_of_the_verdict(told_of(generations=()).state) == 12 + 8 + 16
    assert cost_of_the_verdict(told_of(winner=GAIN).state) == 16
    assert left_for_the_verdict(told_of(winner=GAIN).state).evaluations == 4


def test_a_search_whose_finalists_are_compared_is_over_whatever_its_caps_become() -> None:
    assert search_is_over(
        told_of(generations=((1.0, 1.1, 1.2, 1.3),), finalists={"average": 1.0}).state
    )
