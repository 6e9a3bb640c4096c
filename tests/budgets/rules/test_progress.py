"""Patience on both sides of its boundaries."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Overridden, Status
from budgets.rules.progress import patience
from budgets.rules.table import Reading
from budgets.rules.triggers import judge
from budgets.terms import Calibration, Caps, Envelope, ProxyTerms, Thresholds, Varied

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story


def plan(count: int | None = 2, improve: float = 1 / 64, **fields: Any) -> dict[str, Any]:
    """Fields of a plan of 9 generations of 4 whose baseline scores 1.0."""
    resolved = Envelope(population=4, generations=9, seeds_per_candidate=1)
    limits = Thresholds(patience_generations=count, patience_improve=improve)
    return {
        "resolved": resolved,
        "nominal": resolved,
        "caps": Caps(evaluations=36),
        "thresholds": limits,
        **fields,
    }


def told(story: "Story", *means: float, **fields: Any) -> Reading:
    """Generations with these mean scores."""
    for mean in means:
        story.ask(**fields)
        for candidate, offset in enumerate((-0.25, 0.0, 0.25)):
            story.evaluate(candidate, mean + offset)
        story.evaluate(3, Status.ERROR)
        story.tell()
    return patience(story.state)


@pytest.mark.parametrize(
    ("means", "fires"),
    [
        ((2.0, 2.0 - 1 / 64, 2.0 - 1 / 64), True),  # of 1.0: no more than the limit
        ((2.0, 2.0 - 1 / 32, 2.0 - 1 / 64), False),  # medians differ by 3 / 128
        ((2.0, 2.5, 2.5), True),
        ((2.0, 2.0), False),  # not yet more than two
        ((2.0, 2.0, 2.0, 2.0), True),
        ((3.0, 2.0, 2.0, 2.0), False),  # the median of two is their mean
        ((9.0, 2.0, 2.0, 2.0, 2.0), True),  # what lies further back is forgotten
    ],
)
def test_two_generations_hardly_better_than_the_two_before_stop(
    make_story: "MakeStory", means: tuple[float, ...], fires: bool
) -> None:
    story = make_story(**plan())
    reading = told(story, *means)
    assert (reading.fires, reading.limit) == (fires, 1 / 64)
    verdict = judge(story.state)
    assert verdict.decision == ("stop" if fires else "continue")
    assert [(t.rule, t.overridable) for t in verdict.triggers] == [("patience", True)] * fires


@pytest.mark.parametrize(("last", "fires"), [(2.0 - 1 / 64, True), (1.984, False)])
def test_an_improvement_is_relative_to_the_baseline(
    make_story: "MakeStory", last: float, fires: bool
) -> None:
    reading = told(make_story(**plan(count=1)), 2.0, last)
    assert reading.fires == fires
    assert reading.observed == pytest.approx(2.0 - last)


@pytest.mark.parametrize(("last", "fires"), [(2.0 - 1 / 32, True), (1.968, False)])
def test_without_a_baseline_it_is_relative_to_the_first_mean(
    make_story: "MakeStory", last: float, fires: bool
) -> None:
    assumed = Calibration(assumed_seconds=2.0)
    reading = told(make_story(**plan(count=1), calibration=assumed), 2.0, last)
    assert reading.fires == fires
    assert reading.observed == pytest.approx((2.0 - last) / 2.0)


def test_one_lucky_generation_sets_no_bar(make_story: "MakeStory") -> None:
    story = make_story(**plan(count=3))
    assert not told(story, 2.0, 1.0, 1.98, 1.9, 1.88, 1.86).fires


def test_one_lucky_generation_is_no_improvement(make_story: "MakeStory") -> None:
    assert told(make_story(**plan(count=3)), 2.0, 2.0, 2.0, 2.0, 1.0, 2.0).fires


def test_no_patience_is_no_rule(make_story: "MakeStory") -> None:
    reading = told(make_story(**plan(count=None)), *8 * [2.0])
    assert (reading.fires, reading.observed, reading.limit) == (False, None, None)


def test_before_there_is_enough_to_compare_it_says_so(make_story: "MakeStory") -> None:
    story = make_story(**plan(count=3))
    assert patience(story.state).evidence == "0 generations can be compared, it takes more than 3"
    assert told(story, 2.0, 2.0, 2.0).observed is None


def test_it_speaks_between_generations_and_not_at_the_end(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    assert told(story, 2.0, 2.0, 2.0).fires
    story.ask()
    assert not patience(story.state).fires
    finished = make_story(**plan())
    reading = told(finished, *9 * [2.0])
    assert not reading.fires
    assert reading.observed == 0


def test_scores_of_a_proxy_are_compared_with_its_own_only(make_story: "MakeStory") -> None:
    short = {"settings": {"steps": 10}, "length": 0.1}
    proxy = ProxyTerms(varied=Varied(label="short", **short))
    story = make_story(**plan(count=2), proxy=proxy)
    told(story, 2.0, 2.0)
    assert told(story, 5.0, 5.0, **short).observed is None
    assert told(story, 1.5).observed == 0.25  # medians 2 and 1.75 of the full ones
    reading = told(story, 5.0, **short)
    assert reading.fires
    assert told(story, 4.5, **short).observed == pytest.approx(0.25 / 5)  # medians 5 and 4.75


def test_an_override_starts_the_count_anew(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    fired = []
    told(story, 2.0)
    for number in range(1, 8):
        if told(story, 2.0).fires:
            fired.append(number)
            assert judge(story.state).decision == "stop"
            story.say(Overridden(rule="patience", generation=number, reason="the seeds were odd"))
            assert judge(story.state).decision == "continue"
    assert fired == [2, 4, 6]


def test_an_override_of_another_rule_lets_nothing_pass(make_story: "MakeStory") -> None:
    story = make_story(**plan())
    assert told(story, 2.0, 2.0, 2.0).fires
    story.say(Overridden(rule="crash_rate", generation=1, reason="known"))
    assert patience(story.state).fires
