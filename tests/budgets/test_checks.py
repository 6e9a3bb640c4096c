"""What is made of a calibration, of a check of knobs, and of a check of a proxy."""

from collections.abc import Sequence
from math import nextafter
from typing import Any

import pytest

from budgets.events import Status
from budgets.measurements import (
    Certificate,
    KnobFinding,
    Liveness,
    Noise,
    best_of_noise,
    certificate,
    liveness,
)
from budgets.plan import Calibration, Caps, Envelope
from budgets.rules import judge
from budgets.schedule import blocking_batches, next_action, open_batches, pace
from objectives.api import Variant
from orchestrator.plan.comparisons import short_evaluations
from tests.budgets.conftest import Outcome, Story, make_story, reserved, sample, settled

FAILED = Status.NAN


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("budgets.stats.RESAMPLES", 200)


def measuring(candidates: int, seeds: int, **fields: Any) -> Story:
    """A run of that size without a search."""
    shape = Envelope(population=candidates, generations=1, seeds_per_candidate=seeds)
    values = {
        "phase": "check",
        "tier": None,
        "search": None,
        "resolved": shape,
        "caps": Caps(evaluations=candidates * seeds),
        **fields,
    }
    return make_story(**values)


# The baseline and its noise


def test_a_baseline_is_about_0_within_three_standard_errors_and_its_p90_is_interpolated() -> None:
    assert [Noise(mean, 0.2, 4).is_about_zero for mean in (0.29, 0.31)] == [True, False]
    assert Noise(0.0, None, 1).is_about_zero
    found = Calibration(samples=tuple(sample(seconds) for seconds in (3.0, 5.0, 4.0)))
    assert (found.median_seconds, found.p90_seconds) == pytest.approx((4.0, 4.8))


def test_the_noise_band_and_luck_are_of_means_over_the_seeds_of_a_candidate() -> None:
    found = Noise(2.0, 2**0.5, 2)
    assert found.band(4) == pytest.approx((2 - 2**0.5, 2 + 2**0.5))
    best = found.mean - 2**0.5 / 2 * best_of_noise(16)
    assert found.best_by_chance(16, 4) == pytest.approx(best)
    assert found.best_by_chance(16, 4, sign=-1) == pytest.approx(2 * found.mean - best)
    assert found.best_by_chance(1, 4) == found.mean
    unknown = Noise(2.0, None, 1)
    assert (unknown.best_by_chance(16, 4), found.best_by_chance(0, 4)) == (None, None)
    assert unknown.band(4) is None


# Knobs: a low and high, b low and high

SEEDS = (1, 2, 3, 4)
BASELINE = (1.0, 1.1, 0.9, 1.0)
ENDS = ((0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0))


def checking(points: Sequence[tuple[float, ...]] = ENDS) -> Story:
    """A check of knobs a and b that asks for the baseline and these points."""
    story = measuring(1 + len(points), len(SEEDS), calibration=None)
    story.ask(SEEDS, points=((0.5, 0.5), *points))
    return story


def check(story: Story, *ends: Sequence[Outcome]) -> Liveness:
    """The baseline, then as many candidates with these outcomes."""
    for candidate, outcomes in enumerate((BASELINE, *ends)):
        for seed, outcome in zip(SEEDS, outcomes, strict=True):
            story.evaluate(candidate, outcome, seed=seed)
    finding = liveness(story.state)
    assert finding is not None
    return finding


def found(*ends: Sequence[Outcome]) -> Liveness:
    return check(checking(ENDS[: len(ends)]), *ends)


def only(*ends: Sequence[Outcome]) -> KnobFinding:
    """The finding of the one knob, a."""
    (finding,) = found(*ends).knobs
    return finding


def off_by(*differences: float) -> list[float]:
    return [b + d for b, d in zip(BASELINE, differences, strict=True)]


SAME = off_by(0.0, 0.0, 0.0, 0.0)
WORSE = off_by(1.0, 2.0, 3.0, 4.0)  # p = 0.0305
NOISE = off_by(0.1, -0.1, 0.1, 0.0)
UP, DOWN = off_by(1.0, 1.0, 1.0, 1.0), off_by(-0.5, -0.5, -0.5, -0.5)


def test_the_level_is_shared_by_all_ends() -> None:
    """Enough for one end at 0.05, not for two at 0.025 each."""
    assert (only(WORSE).verdict, only(WORSE, SAME).verdict) == ("alive", "unproven")
    assert found(WORSE).t_limit == pytest.approx(3.182, abs=1e-3)
    assert found(WORSE, SAME).t_limit == pytest.approx(4.177, abs=1e-3)


def test_a_knob_is_dead_when_both_ends_leave_every_score_the_same() -> None:
    assert only(SAME, off_by(0.9e-4, 0.9e-4, 0.8e-4, 0.9e-4)).verdict == "dead"
    assert only(SAME, off_by(0.9e-4, 0.9e-4, 1.1e-4, 0.9e-4)).verdict != "dead"


def test_an_end_with_fewer_than_two_healthy_seeds_is_unstable() -> None:
    finding = found(NOISE, [1.0, Status.NAN, Status.OOM, Status.NAN])
    assert finding.names("unstable") == ("a",)


@pytest.mark.parametrize(
    ("low", "high", "better"),
    [
        (UP, DOWN, "high"),
        (DOWN, UP, "low"),
        (UP, NOISE, "high"),  # lower than the other end
        (UP, UP, "neither"),
        (UP, 4 * [FAILED], "neither"),
        (DOWN, 4 * [FAILED], "low"),
        (NOISE, NOISE, None),
    ],
)
def test_the_better_end_scores_lower_unless_both_are_worse(
    low: Sequence[Outcome], high: Sequence[Outcome], better: str | None
) -> None:
    assert only(low, high).better == better


# A proxy: eight candidates on one seed; short takes a quarter of the calibrated 2 s

RISING = tuple(1.0 + 0.1 * c for c in range(8))
FALLING = RISING[::-1]
NEARLY = (*RISING[:2], 1.35, 1.25, *RISING[4:])
"""One pair in the other order: tau-b 26 / 28."""


def proxied(**fields: Any) -> Story:
    """The full evaluations are asked for, then the short ones."""
    varied = Variant(name="a quarter", settings={"effort": 0.25}, cost_factor=0.25)
    story = measuring(8, 1, proxy=varied, **fields)
    assert next_action(story.state) == "generation"
    story.ask(candidates=8)
    assert next_action(story.state) == "proxy"
    story.say(short_evaluations(story.state))
    return story


def evaluate(story: Story, scores: Sequence[Outcome], *, short: bool, seconds: float = 2.0) -> None:
    for candidate, outcome in enumerate(scores):
        own = reserved(candidate, comparison="proxy" if short else None)
        story.say(own, settled(own, outcome, charged_ms=round(1000 * seconds)))


def both(full: Sequence[Outcome], short: Sequence[Outcome] = RISING, **fields: Any) -> Certificate:
    story = proxied(**fields)
    evaluate(story, full, short=False)
    assert certificate(story.state) is None
    evaluate(story, short, short=True)
    found = certificate(story.state)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("full", "short", "compared", "tau"),
    [
        (RISING, FALLING, 8, -1),
        (RISING, 8 * (1.0,), 8, None),  # tells no two candidates apart
        (RISING, 8 * (FAILED,), 8, None),
        ((FAILED, *RISING[1:]), RISING, 8, 14 / 28),  # the failed one is the worst
        ((FAILED, *RISING[1:]), (FAILED, *RISING[1:]), 7, 1),  # seven are too few
    ],
)
def test_what_does_not_hold(full: Any, short: Any, compared: int, tau: float | None) -> None:
    found = both(full, short)
    assert (found.compared, found.holds) == (compared, False)
    assert found.tau == (None if tau is None else pytest.approx(tau))


def test_a_failed_candidate_is_the_worst_where_higher_is_better_too() -> None:
    found = both((*RISING[1:], FAILED), FALLING, direction="maximize")
    assert found.tau == pytest.approx(-14 / 28)


def test_the_lower_bound_decides_and_may_equal_what_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lower = both(NEARLY).lower
    assert lower is not None
    for asked, holds in ((lower, True), (nextafter(lower, 1), False)):
        monkeypatch.setattr("budgets.measurements.LEAST_AGREEMENT", asked)
        assert both(NEARLY).holds == holds
    assert both(NEARLY, evaluation_seed=8).lower != lower


@pytest.mark.parametrize(("seconds", "decision"), [(42, "continue"), (41, "stop")])
def test_a_check_begins_where_a_cap_has_room_for_both_halves(seconds: int, decision: str) -> None:
    """8 times 2 s and 8 times 0.5 s; the last of either half needs its reservation of 12 s."""
    caps = Caps(evaluations=8, device_hours=seconds / 3600)
    quarter = Variant(name="a quarter", cost_factor=0.25)
    assert judge(measuring(8, 1, proxy=quarter, caps=caps).state).decision == decision
    story = proxied(caps=caps)
    evaluate(story, RISING[:7], short=False)
    assert judge(story.state).decision == decision  # one more full one, before the short ones


def test_short_evaluations_follow_the_full_ones() -> None:
    story = proxied()
    state, batch = story.state, story.state.comparisons["proxy"]
    assert open_batches(state) == [story.current, batch]
    assert blocking_batches(state) == [story.current]
    evaluate(story, RISING, short=False)
    assert blocking_batches(state) == [batch]
    assert judge(state).decision == "continue"
    assert pace(state).progress == pytest.approx(8 / (8 + 8 / 4))
    evaluate(story, RISING, short=True)
    assert blocking_batches(state) == []
    assert judge(state).decision == "done"
    assert (state.accounts.evaluations, state.accounts.comparisons) == (8, 8)
