"""A run is over by the end of its window, whatever the clock on the wall does."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from budgets.accounts import MS_PER_HOUR, Accounts, Calendar
from budgets.events import Amended, Event, Overridden
from budgets.plan import Calibration, Caps, Parent, Window
from budgets.rules import judge, unaffordable
from budgets.state import ImpossibleEventError, RunState, apply, fold

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
"""When every story is planned."""

NOTE = Overridden(rule="crash_rate", generation=0, reason="a record that shows the time")

HOUR = 3600.0
DAY = 24 * HOUR


def window(seconds: float, margin_seconds: float = 0.0) -> Window:
    return Window(hours=seconds / HOUR, margin_seconds=margin_seconds)


def until(seconds: float, margin_seconds: float = 0.0) -> Window:
    return Window(until=BEGAN + timedelta(seconds=seconds), margin_seconds=margin_seconds)


def caps(of: Window, **others: Any) -> Caps:
    return Caps(evaluations=8, window=of, **others)


def hours_left(state: RunState) -> float:
    assert state.accounts.window_hours_free is not None
    return state.accounts.window_hours_free


def say(story: "Story", event: Event, wall: float, elapsed: float) -> None:
    """`event` is recorded when the wall's clock and the session's own show these seconds."""
    at = (BEGAN + timedelta(seconds=wall)).isoformat(timespec="milliseconds")
    number = len(story.records)
    record = story.records[-1]._replace(
        seq=number, at=at, elapsed_ms=round(1000 * elapsed), event=event, digest=f"{number:032x}"
    )
    apply(story.state, record)
    story.records.append(record)


def opened(story: "Story") -> Event:
    return story.state.opened[0]


# What may start


def accounts_until(deadline_ms: int, now_ms: int = 0) -> Accounts:
    calendar = Calendar(deadline_ms, now_ms, now_ms)
    return Accounts(Caps(evaluations=4), calendar=calendar).open_session()


@pytest.mark.parametrize(
    ("reserve_ms", "refused"), [(69_999, False), (70_000, False), (70_001, True)]
)
def test_an_attempt_whose_worst_case_ends_beyond_the_deadline_is_refused(
    reserve_ms: int, refused: bool
) -> None:
    refusal = accounts_until(100_000, now_ms=30_000).refusal(reserve_ms)
    assert (refusal is not None) == refused
    if refusal is not None:
        assert (refusal.currency, refusal.flag) == ("deadline", "--window")
        assert refusal.free * MS_PER_HOUR == pytest.approx(70_000)


def test_after_the_deadline_nothing_is_free_and_never_less() -> None:
    accounts = accounts_until(100_000, now_ms=150_000)
    assert accounts.window_hours_free == 0.0
    assert str(accounts.refusal(1)).endswith("0 s are free (--window)")


@pytest.mark.parametrize("of", [window, until], ids=["hours", "moment"])
@pytest.mark.parametrize(("margin", "seconds"), [(0.0, 12.0), (5.0, 17.0)])
def test_the_safety_margin_lies_before_the_end_of_the_window(
    make_story: "MakeStory", of: Any, margin: float, seconds: float
) -> None:
    for enough, begins in ((seconds, True), (seconds - 0.001, False)):
        story = make_story(caps=caps(of(enough, margin)))  # an attempt reserves 12 s
        story.ask()
        if begins:
            story.reserve(0)
        else:
            with pytest.raises(ImpossibleEventError, match="beyond a cap: deadline"):
                story.reserve(0)


@pytest.mark.parametrize(("seconds", "fires"), [(14.0, False), (13.99, True)])
def test_no_generation_is_begun_that_is_not_expected_to_end_in_time(
    make_story: "MakeStory", seconds: float, fires: bool
) -> None:
    story = make_story(caps=caps(window(seconds)))  # a round of 2 s, then 12 s reserved
    trigger = unaffordable(story.state)
    assert (trigger is not None) == fires
    assert judge(story.state).decision == ("stop" if fires else "continue")
    if trigger is not None:
        assert (trigger.rule, trigger.overridable) == ("budget", False)
        assert trigger.observed == pytest.approx(14 / HOUR)
        assert "(--window)" in trigger.evidence


def test_a_generation_begun_in_time_that_became_late_is_a_stop(make_story: "MakeStory") -> None:
    story = make_story(caps=caps(window(60)))
    story.ask()
    story.evaluate(0)
    story.elapsed_ms = 48_000
    story.evaluate(1)  # 12 s are left: just enough
    assert judge(story.state).decision == "continue"
    story.elapsed_ms = 48_001
    story.say(NOTE)
    verdict = judge(story.state)
    assert verdict.decision == "stop"
    assert "deadline" in verdict.reason


# When a window begins


def test_the_time_of_a_runs_own_calibration_is_part_of_its_window(make_story: "MakeStory") -> None:
    made = Calibration(assumed_seconds=2.0, open_ms=120_000, charged_ms=5)
    state = make_story(calibration=made, caps=caps(window(HOUR))).state
    assert hours_left(state) == pytest.approx(58 / 60)


def test_a_moment_is_a_moment_whatever_the_calibration_took(make_story: "MakeStory") -> None:
    made = Calibration(assumed_seconds=2.0, open_ms=120_000)
    state = make_story(calibration=made, caps=caps(until(HOUR))).state
    assert hours_left(state) == pytest.approx(1.0)


def test_a_forked_run_has_a_window_of_its_own(make_story: "MakeStory") -> None:
    parent = Parent(run_id="before", head="h", device_ms=7000, open_ms=9000)
    story = make_story(parent=parent, caps=caps(window(HOUR)))
    assert hours_left(story.state) == pytest.approx(1.0)
    assert story.state.accounts.device_ms == 7000
    assert story.state.accounts.wall_ms == 9000


def test_time_between_sessions_is_gone_too(make_story: "MakeStory") -> None:
    story = make_story(caps=caps(window(HOUR)))
    say(story, opened(story), wall=1800.0, elapsed=0.0)
    assert hours_left(story.state) == pytest.approx(0.5)


# Clocks that jump


def left_by(story: "Story", jumps: tuple[float, ...]) -> list[float]:
    """Seconds left at records ten seconds apart, the wall's clock jumping."""
    left = []
    for number, jump in enumerate(jumps, 1):
        elapsed = 10.0 * number
        say(story, NOTE, elapsed + jump, elapsed)
        left.append(hours_left(story.state) * HOUR)
    return left


@pytest.mark.parametrize(
    ("jumps", "left"),
    [
        ((0, 0, 0), (3590, 3580, 3570)),
        ((-HOUR, -HOUR, -HOUR), (3590, 3580, 3570)),
        ((0, -DAY, 0), (3590, 3580, 3570)),
        ((600, 600, 600), (2990, 2980, 2970)),
        ((600, 0, -HOUR), (2990, 2990, 2990)),  # what a jump took is not given back
        ((DAY, 0, 0), (0, 0, 0)),
    ],
    ids=["steady", "an hour back", "back and forth", "ahead", "ahead and back", "a day ahead"],
)
def test_a_clock_that_jumps_never_gains_time(
    make_story: "MakeStory", jumps: tuple[float, ...], left: tuple[float, ...]
) -> None:
    story = make_story(caps=caps(window(HOUR)))
    assert left_by(story, jumps) == pytest.approx(list(left))


def test_a_session_opened_on_a_clock_set_back_goes_on_from_the_latest_moment_known(
    make_story: "MakeStory",
) -> None:
    story = make_story(caps=caps(window(HOUR)))
    say(story, NOTE, wall=1800.0, elapsed=1800.0)
    say(story, opened(story), wall=-DAY, elapsed=0.0)
    assert hours_left(story.state) == pytest.approx(0.5)
    say(story, NOTE, wall=-DAY + 60, elapsed=60.0)
    assert hours_left(story.state) * HOUR == pytest.approx(1740)


def told_with_jump(make_story: "MakeStory", jump: float) -> "Story":
    """Two generations, ten seconds each, the wall's clock jumping in the second one."""
    story = make_story()
    elapsed = 0.0
    events = whole(make_story)
    for number, event in enumerate(events):
        elapsed += 1.0
        say(story, event, elapsed + (jump if number > len(events) // 2 else 0.0), elapsed)
    return story


def whole(make_story: "MakeStory") -> list[Event]:
    """What follows the opening of a whole run."""
    story = make_story()
    story.finish()
    return [record.event for record in story.records[2:]]


def test_a_jump_there_and_back_is_noted_twice(make_story: "MakeStory") -> None:
    story = make_story()
    events = whole(make_story)
    half = next(n for n, e in enumerate(events) if e.kind == "generation_told")
    for number, event in enumerate(events):
        jump = HOUR if number in range(3, half + 1) else 0.0
        say(story, event, number + jump, number)
    assert story.state.clock_jumps_ms == [1000 * HOUR, -1000 * HOUR]


def test_a_new_session_on_another_clock_is_no_jump(make_story: "MakeStory") -> None:
    story = make_story()
    say(story, opened(story), wall=DAY, elapsed=0.0)
    assert story.state.clock_jumps_ms == []


# Amending a window


def test_a_cap_amended_while_the_clock_is_set_back_gains_no_time(make_story: "MakeStory") -> None:
    story = make_story(caps=caps(window(HOUR)))
    say(story, NOTE, wall=1800.0, elapsed=1800.0)
    more = story.state.plan.caps.model_copy(update={"device_hours": 9.0})
    say(story, Amended(caps=more, generations=2, reason="more"), wall=-DAY, elapsed=1.0)
    assert hours_left(story.state) == pytest.approx(0.5)


def test_an_amended_window_still_begins_when_the_run_was_planned(make_story: "MakeStory") -> None:
    story = make_story(caps=caps(window(HOUR)))
    longer = story.state.plan.caps.model_copy(update={"window": window(2 * HOUR)})
    say(story, Amended(caps=longer, generations=2, reason="more"), wall=1800.0, elapsed=0.0)
    assert hours_left(story.state) == pytest.approx(1.5)


def test_a_window_can_be_given_to_a_run_that_had_none(story: "Story") -> None:
    given = story.state.plan.caps.model_copy(update={"window": window(HOUR)})
    say(story, Amended(caps=given, generations=2, reason="the cluster closes"), 600.0, 0.0)
    assert hours_left(story.state) * HOUR == pytest.approx(3000)
    say(story, opened(story), 1200.0, 0.0)
    assert hours_left(story.state) * HOUR == pytest.approx(2400)


def test_a_replayed_ledger_has_the_same_deadline(make_story: "MakeStory") -> None:
    story = make_story(caps=caps(window(HOUR)))
    left_by(story, (5.0, -HOUR, DAY))
    assert fold(story.records) == story.state


# Good and bad windows


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "a number of hours, or a moment"),
        ({"hours": 1.0, "until": BEGAN}, "a number of hours, or a moment"),
        ({"hours": 0.0}, "greater than 0"),
        ({"hours": -1.0}, "greater than 0"),
        ({"hours": float("nan")}, "finite"),
        ({"hours": 0.5}, "nothing before its safety margin of 1800 s"),
        ({"hours": 0.4, "margin_seconds": 1800.0}, "nothing before its safety margin"),
        ({"until": datetime(2030, 1, 1)}, "timezone"),
        ({"hours": 2.0, "margin_seconds": -1.0}, "greater than or equal to 0"),
    ],
)
def test_a_window_that_means_nothing_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Window(**fields)


def test_a_window_just_longer_than_its_margin_is_one() -> None:
    assert Window(hours=0.5001).margin_seconds == 1800.0


def test_a_window_is_so_long_from_now_margin_included() -> None:
    now = BEGAN - timedelta(hours=1)
    assert window(2 * HOUR, margin_seconds=60).hours_from(now) == 2.0
    assert until(2 * HOUR, margin_seconds=60).hours_from(now) == 3.0
