"""What each rule observes on both sides of its limits, what follows from it, and in which words."""

from typing import Any

import pytest

from budgets.events import Fired, Overridden, Status
from budgets.plan import Caps, Devices, Envelope, SearchPlan, Thresholds
from budgets.rules import judge, paused_by_chance
from orchestrator.look import text
from tests.budgets.conftest import Story, make_story

MIDDLE = (0.5, 0.5)
ERROR, NAN, LOST = Status.ERROR, Status.NAN, Status.LOST


def plan(population: int = 8, generations: int = 5, seeds: int = 1, **fields: Any) -> Any:
    """Fields of a plan of that size."""
    size = Envelope(population=population, generations=generations, seeds_per_candidate=seeds)
    return {"resolved": size, "nominal": size, "caps": Caps(evaluations=999), **fields}


def fired(story: Story, rule: str) -> Fired | None:
    """The firing of that rule, if it holds the run up."""
    return next((one for one in judge(story.state).triggers if one.rule == rule), None)


def firing(story: Story) -> list[str]:
    """The rules that hold the run up; each has words for what it has seen."""
    triggers = judge(story.state).triggers
    assert all(text.rule(story.state, one) for one in triggers)
    return [one.rule for one in triggers]


def ask(story: Story, *outcomes: Any, at: tuple[float, ...] = MIDDLE, **fields: Any) -> None:
    """A generation at one point, of which the first candidates end so."""
    story.ask(points=(at,) * story.state.plan.resolved.population, **fields)
    for candidate, outcome in enumerate(outcomes):
        story.evaluate(candidate, outcome)


def waive(story: Story, rule: str, generation: int = 0) -> None:
    story.say(Overridden(rule=rule, generation=generation, reason="known"))


# Failures and NaNs


@pytest.mark.parametrize(
    ("population", "failures", "limits", "fires"),
    [
        (8, 1, {}, False),  # 12.5 %, but one failure is not a pattern
        (8, 2, {}, True),
        (20, 2, {}, False),  # exactly 10 %
        (20, 3, {}, True),
        (8, 1, {"crash_count_pause": 1}, True),
    ],
)
@pytest.mark.parametrize("rule", ["crash_rate", "sustained_nan"])
def test_failures_of_one_generation(
    rule: str, population: int, failures: int, limits: dict[str, Any], fires: bool
) -> None:
    story = make_story(**plan(population, thresholds=Thresholds(**limits)))
    ends = [ERROR, Status.OOM, Status.TIMEOUT] if rule == "crash_rate" else [NAN, NAN, NAN]
    ask(story, *ends[:failures])
    assert (rule in firing(story)) == fires
    assert not fires or getattr(fired(story, rule), "observed", None) == failures / population


@pytest.mark.parametrize(
    ("failures", "fires"),
    [
        ((2, 0, 0), []),  # 4.6 % from 2 of 8, at level 5 %
        ((3, 0, 0), [0]),  # 11.1 % from 3 of 8
        ((1, 1, 4), [2]),  # 11.5 % from 6 of 24
        ((3, 1, 2), [0]),  # only what comes after the override counts
    ],
)
def test_pooled_generations_pause_by_a_bound_of_their_rate(
    failures: tuple[int, ...], fires: list[int]
) -> None:
    story, at = make_story(**plan(thresholds=Thresholds(crash_level=0.05))), list[int]()
    for number, count in enumerate(failures):
        ask(story, *count * [ERROR], *(8 - count) * [1.0])
        if "crash_rate" in firing(story):
            at.append(number)
            waive(story, "crash_rate", number)
            assert firing(story) == []
        story.tell()
    assert at == fires


def test_how_often_chance_alone_pauses_a_search() -> None:
    """Two or more of 8 fail in 0.27 % of generations at a rate of 1 %, in 2.2 % at 3 %."""
    planned = make_story(**plan()).state.plan
    count = planned.resolved.generations
    for rate, once in ((0.01, 0.002690), (0.03, 0.022341)):
        assert paused_by_chance(planned, rate) == pytest.approx(1 - (1 - once) ** count, rel=1e-3)


@pytest.mark.parametrize(
    ("nans", "errors", "place", "counted"),
    [
        (1, 1, 0.5, 2),  # sustained_nan does not fire for one
        (2, 1, 0.5, 1),
        (2, 2, 0.5, 2),
        (1, 1, 0.004, 1),  # extreme
        (6, 1, 0.996, 1),
    ],
)
def test_a_nan_is_a_failure_unless_it_is_extreme_or_sustained(
    nans: int, errors: int, place: float, counted: int
) -> None:
    story = make_story(**plan())
    ask(story, *nans * [NAN], *errors * [ERROR], at=(place, 0.5))
    observed = getattr(fired(story, "crash_rate"), "observed", None)
    assert observed == (counted / 8 if counted >= 2 else None)


@pytest.mark.parametrize(
    ("at", "start", "explained"),
    [
        ((0.00501, 0.5), (0.5, 0.5), False),
        ((0.5, 0.995), (0.5, 0.5), True),
        ((0.004, 0.5), (0.005, 0.5), False),  # where the start is too
        ((0.996, 0.5), (0.004, 0.5), True),  # the start is at the other end
    ],
)
def test_the_end_of_a_range_is_extreme_unless_the_start_is_there(
    at: tuple[float, float], start: tuple[float, float], explained: bool
) -> None:
    story = make_story(**plan(search=SearchPlan(seed=7, sigma0=0.2, start=start)))
    ask(story, NAN, NAN, at=at)
    assert (firing(story) == []) == explained


# runaway_time


def devices(kind: str) -> Devices:
    words = {"count": 2, "kind": kind, "name": "some device", "threads": 1, "memory_bytes": 1}
    return Devices.model_validate(words)


@pytest.mark.parametrize(
    ("kind", "seconds", "cpu_seconds", "drift"),  # the calibrated time is 2 s
    [
        ("cpu", 9.0, 4.0, 2.0),
        ("cpu", 2.0, 4.002, 2.001),
        ("cuda", 4.0, 9.0, 2.0),
        ("cuda", 4.002, 2.0, 2.001),
    ],
)
def test_a_cpu_is_judged_by_cpu_seconds_and_a_gpu_by_the_wall_clock(
    kind: str, seconds: float, cpu_seconds: float, drift: float
) -> None:
    story = make_story(devices=devices(kind))
    story.score(1.0, 1.0, 1.0, 1.0, seconds=seconds, cpu_seconds=cpu_seconds)
    observed = getattr(fired(story, "runaway_time"), "observed", None)
    assert observed == (pytest.approx(drift) if drift > 2 else None)


# infrastructure


def test_one_evaluation_lost_three_times_in_a_session_pauses_until_the_next(
    story: Story,
) -> None:
    story.ask()
    for times in (1, 2, 3):
        story.evaluate(0, LOST)
        story.evaluate(1, Status.CANCELLED)
        if times < 3:
            story.evaluate(1, LOST)
        assert firing(story) == ["infrastructure"] * (times == 3)
    waive(story, "infrastructure")
    assert firing(story) == ["infrastructure"]
    story.open()
    assert firing(story) == []
    story.open()
    for _ in range(3):
        story.evaluate(2, LOST)
    assert firing(story) == ["infrastructure"]
    story.evaluate(2)
    assert firing(story) == []


# patience


def patient(count: int | None = 2, **fields: Any) -> dict[str, Any]:
    """Fields of a plan of 9 generations of 4 whose baseline scores 1.0."""
    limits = Thresholds(patience_generations=count, patience_improve=1 / 64)
    own: dict[str, Any] = plan(4, 9, thresholds=limits, **fields)
    return own


def told(story: Story, *means: float, **fields: Any) -> bool:
    """Generations with these mean scores; whether patience ends the search then."""
    for mean in means:
        story.ask(**fields)
        for candidate, offset in enumerate((-0.25, 0.0, 0.25)):
            story.evaluate(candidate, mean + offset)
        story.evaluate(3, ERROR)
        story.tell()
    return fired(story, "patience") is not None


@pytest.mark.parametrize(
    ("count", "means", "fires"),
    [
        (2, (2.0, 2.0 - 1 / 64, 2.0 - 1 / 64), True),  # of 1.0: no more than the limit
        (2, (2.0, 2.0 - 1 / 32, 2.0 - 1 / 64), False),  # medians differ by 3 / 128
        (2, (3.0, 2.0, 2.0, 2.0), False),  # the median of two is their mean
        (2, (9.0, 2.0, 2.0, 2.0, 2.0), True),  # what lies further back is forgotten
        (3, (2.0, 1.0, 1.98, 1.9, 1.88, 1.86), False),  # one outlier sets no bar
        (None, 8 * (2.0,), False),
        (2, 9 * (2.0,), False),  # nothing is left to save
    ],
)
def test_patience_compares_medians_of_means(
    count: int | None, means: tuple[float, ...], fires: bool
) -> None:
    story = make_story(**patient(count))
    assert told(story, *means) == fires
    assert (judge(story.state).decision == "stop") == fires
    if fires:
        story.ask()
        assert fired(story, "patience") is None  # it fires between generations


def test_after_an_override_patience_waits_as_long_again() -> None:
    story, at = make_story(**patient()), []
    told(story, 2.0)
    for number in range(1, 8):
        if told(story, 2.0):
            at.append(number)
            waive(story, "crash_rate", number)
            assert firing(story) == ["patience"]
            waive(story, "patience", number)
            assert firing(story) == []
    assert at == [2, 4, 6]
