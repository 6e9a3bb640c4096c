"""NaNs on both sides of what explains them and of what sustains them, and what they share."""

from math import sqrt
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Overridden, Status
from budgets.rules.apart import Point, told_apart
from budgets.rules.nan import nan_candidates, sustained_nan
from budgets.rules.table import Reading
from budgets.rules.triggers import judge
from budgets.terms import Caps, Envelope, SearchTerms, Thresholds

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story

NAN = Status.NAN
MIDDLE = (0.5, 0.5)
SPACE = {"knobs": [{"name": "tau"}, {"name": "rate"}]}


def plan(population: int = 8, seeds: int = 1, **fields: Any) -> dict[str, Any]:
    """Fields of a plan of that size, five generations long, with two knobs that have names."""
    resolved = Envelope(population=population, generations=5, seeds_per_candidate=seeds)
    return {"resolved": resolved, "caps": Caps(evaluations=999), "space": SPACE, **fields}


def tell_nans(
    story: "Story", nans: int, *, at: Point = MIDDLE, others: int = 0, **fields: Any
) -> Reading:
    """A generation whose first candidates are NaN and lie there; `others` more are healthy."""
    population = story.state.plan.resolved.population
    points = (at,) * nans + (MIDDLE,) * (population - nans)
    story.ask(points=points, **fields)
    for candidate in range(nans + others):
        story.evaluate(candidate, NAN if candidate < nans else 1.0)
    return sustained_nan(story.state, story.current)


def close(story: "Story") -> None:
    for candidate, _ in story.current.owed():
        story.evaluate(candidate)
    story.tell()


def names(story: "Story") -> list[str]:
    return [trigger.rule for trigger in judge(story.state).triggers]


# How many


@pytest.mark.parametrize(
    ("population", "nans", "fires"),
    [
        (8, 1, False),  # 12.5 %, but one is no pattern
        (8, 2, True),
        (20, 2, False),  # exactly 10 %
        (20, 3, True),
        (19, 2, True),  # 10.5 %
    ],
)
def test_more_than_a_tenth_and_more_than_one_nan_pauses(
    make_story: "MakeStory", population: int, nans: int, fires: bool
) -> None:
    story = make_story(**plan(population))
    reading = tell_nans(story, nans)
    assert (reading.rule, reading.decision, reading.overridable) == ("sustained_nan", "pause", True)
    assert (reading.fires, reading.observed, reading.limit) == (fires, nans / population, 0.1)
    assert names(story) == (["sustained_nan"] if fires else [])


def test_on_several_seeds_evaluations_count(make_story: "MakeStory") -> None:
    story = make_story(**plan(8, seeds=3))
    story.ask(seeds=(5, 6, 7), points=(MIDDLE,) * 8)
    for seed, fires in ((5, False), (6, False), (7, True)):  # 1, 2, 3 of 24
        story.evaluate(0, NAN, seed=seed)
        assert sustained_nan(story.state, story.current).fires == fires


@pytest.mark.parametrize(
    ("limits", "fires"),
    [
        ({"nan_count_pause": 1}, True),
        ({"nan_count_pause": 1, "nan_rate_pause": 0.125}, False),
        ({"nan_generations_pause": 1}, True),
        ({"nan_generations_pause": 1, "edge": 0.5}, False),
    ],
)
def test_its_thresholds_are_the_plans(
    make_story: "MakeStory", limits: dict[str, Any], fires: bool
) -> None:
    search = SearchTerms(seed=7, sigma0=0.2, start=(0.5, 0.5))
    if "edge" in limits:  # then every place is near an end; the start's own do not count
        search = search.model_copy(update={"start": (0.9, 0.9)})
        limits = {**limits, "edge": 0.49}
    story = make_story(**plan(thresholds=Thresholds(**limits), search=search))
    assert tell_nans(story, 1, at=(0.4, 0.4)).fires == fires


@pytest.mark.parametrize(("running", "fires"), [(1, False), (2, False), (3, True)])
def test_one_in_each_of_three_generations_running_pauses(
    make_story: "MakeStory", running: int, fires: bool
) -> None:
    story = make_story(**plan())
    for number in range(running):
        reading = tell_nans(story, 1)
        assert reading.fires == (fires and number + 1 == running)
        if number + 1 < running:
            close(story)
    assert names(story) == (["sustained_nan"] if fires else [])
    if fires:
        assert (reading.observed, reading.limit) == (3, 3)
        assert reading.evidence.startswith("each of the last 3 generations (limit 3) has NaNs")


@pytest.mark.parametrize("at", [MIDDLE, (0.5, 0.996)])
def test_a_generation_without_one_that_is_unexplained_breaks_the_run(
    make_story: "MakeStory", at: Point
) -> None:
    story = make_story(**plan())
    for nans in (1, 1, 0 if at == MIDDLE else 1, 1, 1):
        assert not tell_nans(story, nans, at=at if len(story.state.told) == 2 else MIDDLE).fires
        close(story)


def test_an_override_starts_the_count_of_generations_anew(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    for number in range(5):
        assert tell_nans(story, 1).fires == (number == 2)
        if number == 2:
            story.say(Overridden(rule="sustained_nan", generation=2, reason="known"))
            assert sustained_nan(story.state, story.current).fires  # and is waived
            assert names(story) == []
        close(story)


def test_an_override_of_another_rule_starts_no_count_anew(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    for number in range(3):
        assert tell_nans(story, 1).fires == (number == 2)
        story.say(Overridden(rule="crash_rate", generation=number, reason="known"))
        close(story)


# Where


@pytest.mark.parametrize(
    ("at", "start", "explained"),
    [
        ((0.005, 0.5), (0.5, 0.5), True),
        ((0.00501, 0.5), (0.5, 0.5), False),
        ((0.5, 0.995), (0.5, 0.5), True),
        ((0.5, 0.979), (0.5, 0.5), False),
        ((0.004, 0.5), (0.005, 0.5), False),  # where the baseline is too
        ((0.004, 0.5), (0.00501, 0.5), True),
        ((0.996, 0.5), (0.004, 0.5), True),  # the baseline is at the other end
        ((0.004, 0.996), (0.004, 0.5), True),
    ],
)
def test_near_an_end_is_extreme_unless_the_start_is_there(
    make_story: "MakeStory", at: Point, start: Point, explained: bool
) -> None:
    story = make_story(**plan(search=SearchTerms(seed=7, sigma0=0.2, start=start)))
    assert tell_nans(story, 2, at=at).fires == (not explained)
    placed = nan_candidates(story.state.plan, story.current)
    assert [n.is_explained for n in placed] == [explained] * 2


@pytest.mark.parametrize(
    ("distance", "explained"), [(sqrt(2) + 1.5, False), (sqrt(2) + 1.5001, True), (None, False)]
)
def test_an_outlier_of_the_distribution_is_extreme(
    make_story: "MakeStory", distance: float | None, explained: bool
) -> None:
    story = make_story(**plan())
    distances = () if distance is None else (distance,) * 8
    assert tell_nans(story, 2, distances=distances).fires == (not explained)


def test_a_calibration_has_no_extreme_region(make_story: "MakeStory") -> None:
    calibration = Envelope(population=1, generations=1, seeds_per_candidate=5)
    terms = {"phase": "calibration", "tier": None, "search": None, "calibration": None}
    caps = Caps(evaluations=5)
    story = make_story(**{**plan(), **terms, "resolved": calibration, "caps": caps})
    story.ask(seeds=(1, 2, 3, 4, 5), points=((0.0, 1.0),))
    story.evaluate(0, NAN, seed=1)
    story.evaluate(0, NAN, seed=2)
    (trigger,) = judge(story.state).triggers
    assert (trigger.rule, trigger.evidence) == (
        "sustained_nan",
        "the baseline itself scores NaN (2 of 2 seeds): nothing can be compared with it",
    )


# What it says


def test_nans_beyond_one_value_of_a_knob_say_it_in_its_unit_and_the_remedy(
    make_story: "MakeStory",
) -> None:
    knobs = [{"name": "lr", "kind": "log10", "low": -4.0, "high": 0.0}, {"name": "mom"}]
    own = {"name": "python:t:f", "settings": {"knobs": {"lr": {}, "mom": {}}}}
    story = make_story(**plan(space={"knobs": knobs}, objective=own))
    story.ask(points=tuple((0.1 * c, 0.5) for c in range(1, 9)))
    for candidate in range(8):
        story.evaluate(candidate, NAN if candidate > 4 else 1.0)
    assert sustained_nan(story.state, story.current).evidence.endswith(
        "3 of 3 NaN candidates and 0 of 5 healthy ones lie above lr = 0.0158 (0.55 of its range); "
        "to keep out of there lower lr's max"
    )


def test_the_evidence_names_candidates_places_and_what_they_share(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    points = ((0.3, 0.91), (0.7, 0.92), (0.5, 0.93), (0.2, 0.94), (0.996, 0.95))
    healthy = ((0.3, 0.4), (0.6, 0.5), (0.5, 0.3))
    story.ask(points=points + healthy, distances=(1.0, 1.25, 1.5, 1.75, 3.0, 1.0, 1.0, 1.0))
    for candidate in range(8):
        story.evaluate(candidate, NAN if candidate < 5 else 1.0)
    assert sustained_nan(story.state, story.current).evidence == (
        "4 of 8 evaluations of generation 0 are NaN where no extreme region explains it (50.0%, "
        "limit 10%): candidates 0 (1.0 from the mean), 1 (1.2 from the mean), 2 (1.5 from the "
        "mean) and 3 (1.8 from the mean); explained: 4 (3.0 from the mean, tau near its high "
        "end). rate tells them from the healthy ones best (so few that it may be luck): 5 of 5 NaN "
        "candidates and 0 of 3 healthy ones lie above 0.71 of rate's range"
    )


def test_ends_that_explain_nothing_are_named_as_the_starts(make_story: "MakeStory") -> None:
    story = make_story(**plan(search=SearchTerms(seed=7, sigma0=0.2, start=(0.004, 0.5))))
    evidence = tell_nans(story, 2, at=(0.0, 0.5)).evidence
    assert (
        "candidates 0 (tau near its low end, as the start) and 1 (tau near its low end" in evidence
    )


def test_a_quiet_reading_says_what_it_would_take(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    tell_nans(story, 1, others=3)
    reading = sustained_nan(story.state, story.current)
    assert reading.evidence == (
        "1 of 4 evaluations of generation 0 so far are NaN where no extreme region explains it "
        "(12.5% of its 8, limit 10%, 2 at least), in 1 of as many generations running (limit 3); 0 "
        "more NaNs lie in an extreme region"
    )


def test_what_they_share_is_looked_for_in_the_last_generations(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    for _ in range(4):
        points = ((0.3, 0.8), *((0.3, 0.1 * c) for c in range(1, 8)))
        story.ask(points=points)
        story.evaluate(0, NAN)
        last = sustained_nan(story.state, story.current)
        close(story)
    assert last.fires
    assert "rate tells them from the healthy ones best: 3 of 3 NaN candidates and 0 of 14" in (
        last.evidence
    )


@pytest.mark.parametrize(
    ("nans", "healthy", "found"),
    [
        ([(0.1, 0.9)], [(0.1, 0.2)], (1, "above", 0.55, 1, 0)),
        ([(0.1, 0.9)], [(0.3, 0.9)], (0, "below", 0.2, 1, 0)),
        ([(0.2, 0.1), (0.2, 0.2)], [(0.2, 0.15), (0.2, 0.3)], (1, "below", 0.125, 1, 0)),
        ([(0.2, 0.2)], [(0.2, 0.2)], None),  # no knob has two values
        ([], [(0.2, 0.2)], None),
        ([(0.2, 0.2)], [], None),
    ],
)
def test_the_cut_with_the_most_nans_and_the_least_healthy_ones_on_its_side(
    nans: list[Point], healthy: list[Point], found: tuple[int, str, float, int, int] | None
) -> None:
    cut = told_apart(nans, healthy)
    if found is None:
        assert cut is None
    else:
        assert cut is not None
        assert (cut.place, cut.side, cut.failed, cut.healthy) == (*found[:2], *found[3:])
        assert cut.cut == pytest.approx(found[2])


def test_how_often_luck_would_find_such_a_cut_is_never_understated() -> None:
    random, trials = Random(1), 400  # noqa: S311 - points, no secrets
    for n, m in ((2, 6), (4, 12), (8, 16)):
        chances = []
        for _ in range(trials):
            points = [tuple(random.random() for _ in range(10)) for _ in range(n + m)]
            cut = told_apart(points[:n], points[n:])
            assert cut is not None
            chances.append(cut.chance(10))
        for level in (0.05, 0.2):
            assert sum(c <= level for c in chances) <= trials * level
