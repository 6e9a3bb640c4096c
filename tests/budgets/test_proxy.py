"""When short evaluations may stand in for full ones, on both sides of every boundary."""

from collections.abc import Sequence
from dataclasses import replace
from math import nextafter
from typing import Any

import pytest

from budgets.events import Status
from budgets.plan import Caps, Envelope, ProxyPlan, Variant
from budgets.proxy import Certificate, certificate
from budgets.rules import judge, refusal_of
from budgets.schedule import blocking_batches, can_ask, next_action, open_batches
from budgets.state import ImpossibleEventError, short_evaluations
from tests.budgets.conftest import Outcome, Story, reserved, settled, small_plan

RISING = tuple(1.0 + 0.1 * c for c in range(8))
FALLING = RISING[::-1]
NEARLY = (*RISING[:2], 1.35, 1.25, *RISING[4:])
"""One pair in the other order: tau-b 26 / 28."""

FAILED = Status.NAN


def check(agreement: float = 0.5, **fields: Any) -> Story:
    """Eight candidates on one seed; short is expected to take a quarter of the calibrated 2 s."""
    shape = Envelope(population=8, generations=1, seeds_per_candidate=1)
    varied = Variant(label="a quarter", settings={"effort": 0.25}, cost_factor=0.25)
    values = {
        "phase": "check",
        "tier": None,
        "search": None,
        "nominal": shape,
        "resolved": shape,
        "caps": Caps(evaluations=8),
        "proxy": ProxyPlan(variant=varied, agreement=agreement),
        **fields,
    }
    story = Story(small_plan(**values))
    assert can_ask(story.state)
    story.ask(candidates=8)
    assert next_action(story.state) == "proxy"
    return story


def compare(story: Story) -> None:
    assert story.state.plan.proxy is not None
    story.say(short_evaluations(story.state))


def evaluate(story: Story, scores: Sequence[Outcome], **fields: Any) -> None:
    """As many candidates in full, or short in the comparison."""
    for candidate, outcome in enumerate(scores):
        own = reserved(candidate, comparison="proxy" if "short" in fields else None)
        took = 1000 * fields.get("short", fields.get("full", 2.0))
        story.say(own, settled(own, outcome, charged_ms=round(took)))


def both(story: Story, full: Sequence[Outcome], short: Sequence[Outcome] = RISING) -> Certificate:
    compare(story)
    evaluate(story, full)
    assert certificate(story.state) is None
    evaluate(story, short, short=0.5)
    found = certificate(story.state)
    assert found is not None
    return found


def test_a_comparison_says_how_far_both_lengths_agree() -> None:
    found = both(check(), NEARLY, tuple(s + 3 for s in RISING))
    assert (found.candidates, found.compared, found.healthy) == (8, 8, 8)
    assert found.tau == pytest.approx(26 / 28)
    assert found.lower is not None
    assert 0.5 < found.lower < 26 / 28
    assert (found.upper, found.holds) == (1, True)


@pytest.mark.parametrize(
    ("full", "short", "compared", "healthy", "tau"),
    [
        (RISING, FALLING, 8, 8, -1),
        (RISING, 8 * (1.0,), 8, 8, None),  # tells no two candidates apart
        (RISING, 8 * (FAILED,), 8, 0, None),
        ((FAILED, *RISING[1:]), RISING, 8, 7, 14 / 28),  # the failed one is the worst
        ((FAILED, *RISING[1:]), (FAILED, *RISING[1:]), 7, 7, 1),  # seven are too few
    ],
)
def test_what_does_not_hold(full: Any, short: Any, compared: int, healthy: int, tau: Any) -> None:
    found = both(check(), full, short)
    assert (found.compared, found.healthy, found.holds) == (compared, healthy, False)
    assert found.tau == (None if tau is None else pytest.approx(tau))


def test_the_lower_bound_decides_and_may_equal_what_is_asked() -> None:
    lower = both(check(), NEARLY).lower
    assert lower is not None
    for asked, holds in ((lower, True), (nextafter(lower, 1), False)):
        assert both(check(agreement=asked), NEARLY).holds == holds
    assert both(check(evaluation_seed=8), NEARLY).lower != lower


def test_short_evaluations_follow_the_full_ones() -> None:
    story = check()
    compare(story)
    state, batch = story.state, story.state.comparisons["proxy"]
    assert open_batches(state) == [story.current, batch]
    assert blocking_batches(state) == [story.current]
    evaluate(story, RISING)
    assert blocking_batches(state) == [batch]
    assert judge(state).decision == "continue"
    evaluate(story, RISING, short=0.5)
    assert blocking_batches(state) == []
    assert judge(state).decision == "done"
    assert (state.accounts.evaluations, state.accounts.comparisons) == (8, 8)


def test_a_cap_refuses_a_short_evaluation_too() -> None:
    story = check(caps=Caps(evaluations=8, device_hours=32.0 / 3600))
    compare(story)
    evaluate(story, RISING, full=2.3)
    batch = story.state.comparisons["proxy"]
    assert refusal_of(story.state, batch, 0) is None
    evaluate(story, RISING[:2], short=1.0)
    assert refusal_of(story.state, batch, 2) is not None


def test_it_is_its_generation_evaluated_short_once_and_nothing_else() -> None:
    story = check()
    assert story.state.plan.proxy is not None
    event = short_evaluations(story.state)
    for wrong in (
        replace(event, configurations=event.configurations[::-1]),
        replace(event, seeds=8 * ((6,),)),
    ):
        with pytest.raises(ImpossibleEventError, match="not the generation evaluated short"):
            story.say(wrong)
    story.say(event)
    with pytest.raises(ImpossibleEventError, match="asked before"):
        story.say(event)
