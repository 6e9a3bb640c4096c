"""Rules about failures, time and losses, on both sides of their boundaries."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import PanelAsked, Reserved, Settled, Status
from budgets.rules.failures import (
    crash_rate,
    keeps_getting_lost,
    runaway_time,
    setup_failed,
    too_few_healthy,
)
from budgets.rules.table import Reading
from budgets.rules.triggers import judge
from budgets.terms import Arm, Calibration, Devices, PanelName, Thresholds
from tests.budgets.rules.small import envelope, rules

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, MakeStory, Outcome, Story


# crash_rate


def fail(story: "Story", failures: int, status: Status = Status.ERROR) -> Reading:
    """A generation whose first candidates failed and whose others are not evaluated yet."""
    story.ask()
    for candidate in range(failures):
        story.evaluate(candidate, status)
    return crash_rate(story.state, story.current)


@pytest.mark.parametrize(
    ("population", "failures", "fires"),
    [
        (8, 1, False),  # 12.5 %, but one failure is no pattern
        (8, 2, True),
        (20, 2, False),  # exactly 10 %
        (20, 3, True),
        (30, 3, False),  # exactly 10 %
        (30, 4, True),
        (19, 2, True),  # 10.5 %
    ],
)
def test_more_than_a_tenth_and_more_than_one_failure_pauses(
    make_story: "MakeStory", population: int, failures: int, fires: bool
) -> None:
    story = make_story(**envelope(population))
    reading = fail(story, failures)
    assert reading.fires == fires
    assert judge(story.state).decision == ("pause" if fires else "continue")


def test_the_crash_rate_is_told_with_its_numbers_and_causes(make_story: "MakeStory") -> None:
    story = make_story(**envelope(8))
    reading = fail(story, 2, Status.OOM)
    assert reading == Reading(
        "crash_rate",
        "pause",
        0,
        0.25,
        0.10,
        "2 of 2 evaluations of generation 0 so far failed (25.0% of its 8, limit 10%): oom (it was "
        "oom)",
        fires=True,
    )


def test_a_quiet_crash_rate_says_what_it_observes_and_would_take(make_story: "MakeStory") -> None:
    reading = fail(make_story(**envelope(8)), 1, Status.OOM)
    assert (reading.observed, reading.limit) == (0.125, 0.10)
    assert reading.evidence == (
        "1 of 1 evaluations of generation 0 so far failed (12.5% of its 8, limit 10%, 2 at least): "
        "oom (it was oom)"
    )


def test_a_crash_rate_of_all_evaluations_is_told_as_that(make_story: "MakeStory") -> None:
    story = make_story(**envelope(4))
    fail(story, 2)
    story.evaluate(2)
    story.evaluate(3)
    evidence = crash_rate(story.state, story.current).evidence
    assert evidence.startswith("2 of 4 evaluations of generation 0 failed (50.0%, limit 10%)")


LR = {"name": "lr", "kind": "log10", "low": -4.0, "high": 0.0, "baseline": 1e-3}
DECLARED = {"name": "python:t:f", "settings": {"knobs": {"lr": {}}}}


ASSUMED = Calibration(assumed_seconds=2.0)


@pytest.mark.parametrize(
    ("failing", "more", "where"),
    [
        (
            (0.9, 0.8),
            {},
            "above lr = 0.1 (0.75 of its range), nothing healthy does (so few that it may "
            "be luck); to keep out of there lower lr's max",
        ),
        (
            (0.1, 0.2),
            {},
            "below lr = 0.000794 (0.23 of its range), nothing healthy does (so few that it "
            "may be luck); to keep out of there raise lr's min",
        ),
        (
            (0.1, 0.2),
            {"calibration": ASSUMED},  # nobody knows whether the baseline is healthy
            "below lr = 0.00251 (0.35 of its range), nothing healthy does (so few that it "
            "may be luck)",
        ),
        ((0.1, 0.3), {}, ""),  # the baseline lies there and is healthy
        ((0.1, 0.9), {}, ""),
    ],
)
def test_crashes_beyond_one_value_of_a_knob_say_which_and_the_remedy(
    make_story: "MakeStory", failing: tuple[float, float], more: dict[str, Any], where: str
) -> None:
    story = make_story(**envelope(4), space={"knobs": [LR]}, objective=DECLARED, **more)
    story.ask(points=tuple((x,) for x in (*failing, 0.5, 0.7)))
    for candidate in range(4):
        story.evaluate(candidate, Status.ERROR if candidate < 2 else 1.0)
    said = crash_rate(story.state, story.current).evidence.partition("; all that fail lie ")[2]
    assert said == where


@pytest.mark.parametrize(("baseline", "cut"), [(1.0, "0.55"), (Status.ERROR, "0.50")])
def test_a_baseline_that_is_healthy_on_fresh_seeds_tells_where_failing_begins(
    tell: Callable[..., "Story"], make_confirmed_plan: "MakePlan", baseline: "Outcome", cut: str
) -> None:
    plan = make_confirmed_plan(**envelope(5), calibration=ASSUMED)
    story = tell(plan, generations=(), baseline=11 * (baseline,), control=5 * (1.0,))
    story.ask(points=tuple((x, 0.5) for x in (0.6, 0.7, 0.2, 0.3, 0.4)))
    for candidate in range(5):
        story.evaluate(candidate, Status.ERROR if candidate < 2 else 1.0)
    said = f"; all that fail lie above {cut} of knob 0's range, nothing healthy does"
    assert said in crash_rate(story.state, story.current).evidence


def test_every_status_that_is_final_and_not_ok_counts_as_a_failure(make_story: "MakeStory") -> None:
    for status in (Status.OOM, Status.TIMEOUT, Status.ERROR):
        assert fail(make_story(**envelope(8)), 2, status).fires


@pytest.mark.parametrize(
    ("nans", "errors", "place", "fires"),
    [
        (1, 1, 0.5, True),  # nothing speaks for a single NaN
        (2, 0, 0.5, False),  # sustained_nan speaks
        (2, 1, 0.5, False),
        (2, 2, 0.5, True),  # both speak
        (1, 1, 0.004, False),  # an extreme region explains it
        (1, 2, 0.004, True),
        (6, 1, 0.996, False),
    ],
)
def test_nans_count_unless_something_else_speaks_for_them(
    make_story: "MakeStory", nans: int, errors: int, place: float, fires: bool
) -> None:
    story = make_story(**envelope(8))
    story.ask(points=tuple((place, 0.5) for _ in range(8)))
    for candidate in range(nans + errors):
        story.evaluate(candidate, Status.NAN if candidate < nans else Status.ERROR)
    reading = crash_rate(story.state, story.current)
    assert reading.fires == fires
    counted = nans + errors if (nans, place) == (1, 0.5) else errors
    assert reading.observed == counted / 8
    spared = nans + errors - counted
    assert (f"; {spared} more that are NaN do not count here" in reading.evidence) == (spared > 0)


@pytest.mark.parametrize("status", [Status.LOST, Status.CANCELLED])
def test_attempts_the_infrastructure_lost_do_not_count(
    make_story: "MakeStory", status: Status
) -> None:
    assert not fail(make_story(**envelope(8)), 8, status).fires


def test_an_evaluation_lost_first_and_healthy_later_is_no_failure(make_story: "MakeStory") -> None:
    story = make_story(**envelope(8))
    fail(story, 2, Status.LOST)
    story.evaluate(0)
    story.evaluate(1)
    assert not crash_rate(story.state, story.current).fires


def test_the_thresholds_of_a_crash_rate_are_the_plans(make_story: "MakeStory") -> None:
    strict = Thresholds(crash_count_pause=1)
    assert fail(make_story(**envelope(8), thresholds=strict), 1).fires
    lenient = Thresholds(crash_rate_pause=0.25)
    assert not fail(make_story(**envelope(8), thresholds=lenient), 2).fires


# too_few_healthy


@pytest.mark.parametrize(("healthy", "fires"), [(4, False), (3, True), (0, True)])
def test_fewer_healthy_candidates_than_parents_teach_nothing(
    make_story: "MakeStory", healthy: int, fires: bool
) -> None:
    story = make_story(**envelope(8))
    story.ask()
    for candidate in range(7):
        story.evaluate(candidate, 1.0 if candidate < healthy else Status.NAN)
    assert not too_few_healthy(story.current).fires  # not closed yet
    story.evaluate(7, Status.NAN)
    reading = too_few_healthy(story.current)
    assert reading.fires == fires
    assert (reading.observed, reading.limit, reading.overridable) == (healthy, 4, False)
    assert reading.evidence == (
        f"{'only ' * fires}{healthy} of 8 candidates of generation 0 are healthy, the search "
        "needs 4"
    )


def test_an_odd_population_needs_half_of_it_rounded_down(make_story: "MakeStory") -> None:
    story = make_story(**envelope(5))
    assert not too_few_healthy(story.score(1.0, 1.0, *3 * [Status.NAN])).fires


# runaway_time


def devices(kind: str) -> Devices:
    return Devices.model_validate(
        {"count": 2, "kind": kind, "name": "some device", "threads": 1, "memory_bytes": 1}
    )


@pytest.mark.parametrize(("seconds", "fires"), [(4.0, False), (4.001, True), (1.0, False)])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_a_median_evaluation_over_twice_the_calibrated_time_pauses(
    make_story: "MakeStory", kind: str, seconds: float, fires: bool
) -> None:
    story = make_story(devices=devices(kind))
    story.score(1.0, 1.0, 1.0, 1.0, seconds=seconds, cpu_seconds=seconds)
    reading = runaway_time(story.state, story.current)
    assert reading.fires == fires
    assert rules(story) == (["runaway_time"] if fires else [])


@pytest.mark.parametrize(("kind", "measure"), [("cpu", "cpu_seconds"), ("cuda", "seconds")])
def test_a_cpu_is_judged_by_cpu_seconds_and_a_gpu_by_the_wall_clock(
    make_story: "MakeStory", kind: str, measure: str
) -> None:
    slow = {"seconds": 2.0, "cpu_seconds": 2.0, measure: 9.0}
    other = {"seconds": 9.0, "cpu_seconds": 9.0, measure: 2.0}
    for times, fires in ((slow, True), (other, False)):
        story = make_story(devices=devices(kind))
        story.score(1.0, 1.0, 1.0, 1.0, **times)
        reading = runaway_time(story.state, story.current)
        assert reading.fires == fires
        assert (reading.observed, reading.limit) == (4.5 if fires else 1.0, 2.0)
        unit = "CPU seconds" if kind == "cpu" else "seconds"
        assert reading.overridable
        if fires:
            assert f"took 9.0 {unit}, 4.5 times the calibrated 2.0" in reading.evidence


def test_a_generation_is_not_judged_slow_before_it_is_closed(story: "Story") -> None:
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate, cpu_seconds=99.0)
    assert not runaway_time(story.state, story.current).fires
    story.evaluate(3, cpu_seconds=99.0)
    assert runaway_time(story.state, story.current).fires


def test_only_healthy_evaluations_have_a_time_to_judge(story: "Story") -> None:
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate, Status.TIMEOUT, cpu_seconds=99.0)
    story.evaluate(3, cpu_seconds=2.0)
    assert not runaway_time(story.state, story.current).fires


def test_without_a_healthy_evaluation_there_is_no_time_to_judge(story: "Story") -> None:
    generation = story.score(*4 * [Status.TIMEOUT], cpu_seconds=99.0)
    assert not runaway_time(story.state, generation).fires


def test_the_middle_evaluation_decides_not_a_straggler(story: "Story") -> None:
    story.ask()
    for candidate, seconds in enumerate((2.0, 2.0, 3.0, 500.0)):
        story.evaluate(candidate, cpu_seconds=seconds)
    assert not runaway_time(story.state, story.current).fires


@pytest.mark.parametrize(("assumed", "fires"), [(0.999, False), (1.0, True)])
def test_below_a_second_nothing_runs_away(
    make_story: "MakeStory", assumed: float, fires: bool
) -> None:
    story = make_story(calibration=Calibration(assumed_seconds=assumed))
    story.score(1.0, 1.0, 1.0, 1.0, seconds=9.0, cpu_seconds=0.0)
    assert runaway_time(story.state, story.current).fires == fires


def test_without_a_calibration_nothing_runs_away(make_story: "MakeStory") -> None:
    story = make_story(calibration=None)
    story.score(1.0, 1.0, 1.0, 1.0, seconds=1e6, cpu_seconds=1e6)
    reading = runaway_time(story.state, story.current)
    assert (reading.fires, reading.observed, reading.limit) == (False, None, 2.0)


# keeps_getting_lost


def test_an_evaluation_lost_three_times_in_a_session_pauses(story: "Story") -> None:
    story.ask()
    for times, cause in enumerate(("the rack burned", "no network", "the node died"), 1):
        story.evaluate(1, Status.LOST, cause=cause)
        reading = keeps_getting_lost(story.state, story.current)
        assert (reading.rule, reading.observed, reading.limit) == ("infrastructure", times, 3)
        assert reading.fires == (times == 3)
    assert "candidate 1, seed 5 of generation 0 was lost 3 times (the node" in reading.evidence
    assert not reading.overridable


def test_three_losses_of_different_evaluations_are_no_pattern(story: "Story") -> None:
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate, Status.LOST)
        story.evaluate(candidate, Status.LOST)
    assert not keeps_getting_lost(story.state, story.current).fires


def test_a_new_session_tries_again_from_zero(story: "Story") -> None:
    story.ask()
    for _ in range(3):
        story.evaluate(1, Status.LOST)
    assert rules(story) == ["infrastructure"]
    story.open()
    assert rules(story) == []
    for _ in range(2):
        story.evaluate(1, Status.LOST)
    assert rules(story) == []
    story.evaluate(1, Status.LOST)
    assert rules(story) == ["infrastructure"]


def test_an_attempt_lost_with_its_session_does_not_count_against_the_next(story: "Story") -> None:
    story.ask()
    reservation = story.reserve(1)
    story.open()
    story.say(settle_lost(reservation))
    for _ in range(2):
        story.evaluate(1, Status.LOST)
    assert not keeps_getting_lost(story.state, story.current).fires


def settle_lost(reservation: Reserved) -> Settled:
    return Settled(
        generation=reservation.generation,
        candidate=reservation.candidate,
        seed=reservation.seed,
        attempt=reservation.attempt,
        status=Status.LOST,
        score=None,
        charged_ms=1,
        seconds=0.0,
    )


def test_cancelled_attempts_are_not_the_infrastructures_fault(story: "Story") -> None:
    story.ask()
    for _ in range(5):
        story.evaluate(1, Status.CANCELLED)
    assert not keeps_getting_lost(story.state, story.current).fires


def test_an_evaluation_that_came_through_is_not_held_up(story: "Story") -> None:
    story.ask()
    for _ in range(3):
        story.evaluate(1, Status.LOST)
    story.evaluate(1)
    assert not keeps_getting_lost(story.state, story.current).fires


# setup_failed

NO_DATA = "SetupError: cannot read data 'text': No such file or directory."


def test_the_first_evaluation_that_finds_nothing_to_evaluate_pauses(story: "Story") -> None:
    story.ask()
    quiet = setup_failed(story.state)
    assert (quiet.observed, quiet.limit, quiet.fires) == (0, 0, False)
    story.evaluate(2, Status.LOST, cause=NO_DATA)
    reading = setup_failed(story.state)
    assert reading == Reading(
        "setup_failed",
        "pause",
        0,
        1,
        0,
        "nothing can be evaluated, as candidate 2, seed 5 of generation 0 found: SetupError: "
        "cannot read data 'text': No such file or directory. Mend it and repeat the command: the "
        "evaluation is owed again",
        overridable=False,
        fires=True,
    )
    assert judge(story.state).decision == "pause"
    assert rules(story) == ["setup_failed"]


def test_what_ran_beside_it_changes_nothing(story: "Story") -> None:
    story.ask()
    others = [story.reserve(0), story.reserve(1)]
    story.evaluate(2, Status.LOST, cause=NO_DATA)
    first = setup_failed(story.state)
    for reservation, cause in zip(others, ("SetupError: another", "its node died"), strict=True):
        story.say(replace(settle_lost(reservation), cause=cause))
    assert setup_failed(story.state) == first
    assert story.current.owed() == [(c, 5) for c in range(4)]


def test_a_new_session_tries_it_again(story: "Story") -> None:
    story.ask()
    story.evaluate(2, Status.LOST, cause=NO_DATA)
    story.open()
    assert rules(story) == []
    story.evaluate(2, Status.LOST, cause=NO_DATA)
    assert rules(story) == ["setup_failed"]
    story.open()
    story.evaluate(2)
    assert rules(story) == []


def test_what_an_earlier_session_left_behind_holds_up_nobody(story: "Story") -> None:
    story.ask()
    reservation = story.reserve(2)
    story.open()
    story.say(replace(settle_lost(reservation), cause=NO_DATA, recovered=True))
    assert rules(story) == []


def test_it_is_neither_a_failure_nor_a_loss_of_the_infrastructures(
    make_story: "MakeStory",
) -> None:
    story = make_story(thresholds=Thresholds(attempts_per_session=1, crash_count_pause=1))
    story.ask()
    story.evaluate(2, Status.LOST, cause=NO_DATA)
    assert rules(story) == ["setup_failed"]
    assert story.state.accounts.evaluations == 0
    assert story.state.accounts.lost_ms > 0


@pytest.mark.parametrize("cause", ["", "its node died", "ValueError: SetupError: no", "no data"])
def test_other_losses_say_nothing_of_the_setup(story: "Story", cause: str) -> None:
    story.ask()
    story.evaluate(2, Status.LOST, cause=cause)
    assert not setup_failed(story.state).fires


@pytest.mark.parametrize("panel", ["finalists", "winner"])
def test_panels_are_held_up_too(tell: Callable[..., "Story"], panel: PanelName) -> None:
    story = tell()
    story.say(PanelAsked(panel=panel, arms=(Arm(name="a", point=(0.4, 0.6)),), seeds=((77,),)))
    reservation = Reserved(
        panel=panel, generation=0, candidate=0, seed=77, attempt=1, reserve_ms=12_000
    )
    story.say(reservation, replace(settle_lost(reservation), panel=panel, cause=NO_DATA))
    (trigger,) = judge(story.state).triggers
    assert trigger.rule == "setup_failed"
    assert f"of the {panel} panel found" in trigger.evidence
    assert trigger.generation == story.state.asked


@pytest.mark.parametrize("phase", ["calibration", "check"])
def test_runs_that_search_nothing_are_held_up_too(make_story: "MakeStory", phase: str) -> None:
    story = make_story(phase=phase, tier=None, search=None, **envelope(4, 1))
    story.ask()
    story.evaluate(1, Status.LOST, cause=NO_DATA)
    assert rules(story) == ["setup_failed"]
