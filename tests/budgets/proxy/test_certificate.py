"""When short evaluations may stand in for full ones, on both sides of every boundary."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nextafter
from typing import Any

import pytest

from budgets.events import ComparisonAsked, Reserved, Settled, Status
from budgets.plan import Caps, Envelope, Plan, ProxyTerms, Variant
from budgets.proxy import Certificate, certificate
from budgets.rules import judge, refusal_of
from budgets.schedule import blocking_batches, can_ask, next_action, open_batches
from budgets.state import ImpossibleEventError, short_evaluations
from tests.budgets.conftest import Story, small_plan

Outcome = float | Status
Check = Callable[..., "Compared"]

RISING = tuple(1.0 + 0.1 * c for c in range(8))
FALLING = RISING[::-1]
NEARLY = (*RISING[:2], 1.35, 1.25, *RISING[4:])
"""One pair in the other order: tau-b 26 / 28."""

POINTS = tuple(2 * [(0.75, 0.5), (0.25, 0.5), (0.5, 0.75), (0.5, 0.25)])
SHORT = {"effort": 0.25}


def plan(agreement: float = 0.5, **fields: Any) -> Plan:
    """Eight candidates on one seed; short is expected to take a quarter of the calibrated 2 s."""
    shape = Envelope(population=8, generations=1, seeds_per_candidate=1)
    varied = Variant(label="a quarter", settings=SHORT, cost_factor=0.25)
    values = {
        "phase": "check",
        "tier": None,
        "search": None,
        "nominal": shape,
        "resolved": shape,
        "caps": Caps(evaluations=8),
        "proxy": ProxyTerms(variant=varied, agreement=agreement),
        **fields,
    }
    return small_plan(**values)


class Compared:
    """A check that is told step by step."""

    def __init__(self, story: Story) -> None:
        self.story = story

    def ask(self) -> ComparisonAsked:
        """The candidates in full; returns the panel that is due."""
        self.story.ask(candidates=8, points=POINTS)
        assert next_action(self.story.state) == "proxy"
        return self.panel

    @property
    def panel(self) -> ComparisonAsked:
        assert self.story.state.plan.proxy is not None
        return short_evaluations(self.story.current, self.story.state.plan.proxy)

    def evaluate(self, scores: Sequence[Outcome], seconds: float, **place: Any) -> None:
        for candidate, outcome in enumerate(scores):
            where = {"generation": 0, "candidate": candidate, "seed": 5, "attempt": 1, **place}
            took = {"charged_ms": round(1000 * seconds), "seconds": seconds}
            is_failed = isinstance(outcome, Status)
            status, score = (outcome, None) if is_failed else (Status.OK, outcome)
            settled = Settled(status=status, score=score, **took, **where)  # type: ignore[arg-type]
            self.story.say(Reserved(reserve_ms=12_000, **where), settled)

    def both(self, full: Sequence[Outcome], short: Sequence[Outcome] = RISING) -> Certificate:
        """What these scores of the two lengths amount to."""
        self.story.say(self.ask())
        self.evaluate(full, 2.0)
        assert certificate(self.story.state) is None
        self.evaluate(short, 0.5, comparison="proxy")
        found = certificate(self.story.state)
        assert found is not None
        return found


@pytest.fixture
def check() -> Check:
    """A check of a proxy on the small plan, with some fields changed."""
    return lambda **fields: Compared(Story(plan(**fields)))


def test_a_comparison_says_how_far_both_lengths_agree(check: Check) -> None:
    found = check().both(NEARLY, tuple(s + 3 for s in RISING))
    assert (found.candidates, found.compared, found.healthy) == (8, 8, 8)
    assert found.tau == pytest.approx(26 / 28)
    assert found.lower is not None
    assert found.upper == 1
    assert 0.5 < found.lower < 26 / 28
    assert found.holds


@pytest.mark.parametrize(
    ("full", "short", "compared", "healthy", "tau"),
    [
        (RISING, FALLING, 8, 8, -1),
        (RISING, 8 * (1.0,), 8, 8, None),  # tells no two candidates apart
        (RISING, 8 * (Status.ERROR,), 8, 0, None),
        ((Status.NAN, *RISING[1:]), RISING, 8, 7, 14 / 28),  # the failed one is the worst
        ((Status.NAN, *RISING[1:]), (Status.NAN, *RISING[1:]), 7, 7, 1),  # seven are too few
    ],
)
def test_what_does_not_hold(
    check: Check,
    full: tuple[Outcome, ...],
    short: tuple[Outcome, ...],
    compared: int,
    healthy: int,
    tau: float | None,
) -> None:
    run = check()
    found = run.both(full, short)
    assert (found.compared, found.healthy, found.holds) == (compared, healthy, False)
    assert found.tau == (None if tau is None else pytest.approx(tau))


def test_the_lower_bound_decides_and_may_equal_what_is_asked(check: Check) -> None:
    lower = check().both(NEARLY).lower
    assert lower is not None
    for asked, holds in ((lower, True), (nextafter(lower, 1), False)):
        assert check(agreement=asked).both(NEARLY).holds == holds
    assert check(evaluation_seed=8).both(NEARLY).lower != lower


def test_short_evaluations_follow_the_full_ones(check: Check) -> None:
    run = check()
    assert can_ask(run.story.state)
    run.story.say(run.ask())
    panel, state = run.story.state.comparisons["proxy"], run.story.state
    assert open_batches(state) == [run.story.current, panel]
    assert blocking_batches(state) == [run.story.current]
    run.evaluate(RISING, 2.0)
    assert blocking_batches(state) == [panel]
    assert judge(state).decision == "continue"
    assert certificate(state) is None
    run.evaluate(RISING, 0.5, comparison="proxy")
    assert blocking_batches(state) == []
    assert judge(state).decision == "done"
    assert (state.accounts.evaluations, state.accounts.comparisons) == (8, 8)


def test_a_cap_refuses_a_short_evaluation_too(check: Check) -> None:
    run = check(caps=Caps(evaluations=8, device_hours=32.0 / 3600))
    run.story.say(run.ask())
    run.evaluate(RISING, 2.3)
    panel = run.story.state.comparisons["proxy"]
    assert refusal_of(run.story.state, panel, 0) is None
    run.evaluate(RISING[:2], 1.0, comparison="proxy")
    assert refusal_of(run.story.state, panel, 2) is not None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            lambda event: replace(event, configurations=event.configurations[::-1]),
            "not generation 0 evaluated short",
        ),
        (lambda event: replace(event, seeds=8 * ((6,),)), "not generation 0 evaluated short"),
    ],
)
def test_it_is_its_generation_evaluated_short_and_nothing_else(
    check: Check, changed: Callable[[ComparisonAsked], ComparisonAsked], why: str
) -> None:
    run = check()
    panel = run.ask()
    with pytest.raises(ImpossibleEventError, match=why):
        run.story.say(changed(panel))
    run.story.say(panel)
    with pytest.raises(ImpossibleEventError, match="asked before"):
        run.story.say(panel)
