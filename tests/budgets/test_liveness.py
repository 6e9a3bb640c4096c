"""The findings of a check of knobs, on both sides of their limits."""

from collections.abc import Sequence
from typing import Any

import pytest

from budgets.events import GenerationAsked, Status
from budgets.liveness import KnobFinding, Liveness, label, liveness
from budgets.plan import Caps, Envelope
from tests.budgets.conftest import Outcome, Story, make_story

SEEDS = (1, 2, 3, 4)
BASELINE = (1.0, 1.1, 0.9, 1.0)
ENDS = ((0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0))
"""Knob a low and high, knob b low and high."""


def checking(points: Sequence[tuple[float, ...]] = ENDS) -> Story:
    """A check of knobs a and b that asks for the baseline and these points."""
    envelope = Envelope(population=1 + len(points), generations=1, seeds_per_candidate=len(SEEDS))
    settings: dict[str, Any] = {
        "phase": "check",
        "tier": None,
        "resolved": envelope,
        "caps": Caps(evaluations=envelope.evaluations),
        "search": None,
        "calibration": None,
    }
    story = make_story(**settings)
    story.say(GenerationAsked(generation=0, points=((0.5, 0.5), *points), seeds=SEEDS))
    return story


def evaluate(story: Story, *ends: Sequence[Outcome]) -> None:
    """The baseline, then as many candidates with these outcomes."""
    for candidate, outcomes in enumerate((BASELINE, *ends)):
        for seed, outcome in zip(SEEDS, outcomes, strict=True):
            story.evaluate(candidate, outcome, seed=seed)


def off_by(*differences: float) -> list[float]:
    return [b + d for b, d in zip(BASELINE, differences, strict=True)]


SAME = off_by(0.0, 0.0, 0.0, 0.0)
WORSE = off_by(1.0, 2.0, 3.0, 4.0)  # p = 0.0305
NOISE = off_by(0.1, -0.1, 0.1, 0.0)
FAILED = [Status.NAN] * 4
UP, DOWN = off_by(1.0, 1.0, 1.0, 1.0), off_by(-0.5, -0.5, -0.5, -0.5)


def found(*ends: Sequence[Outcome]) -> Liveness:
    story = checking(ENDS[: len(ends)])
    evaluate(story, *ends)
    finding = liveness(story.state)
    assert finding is not None
    return finding


def only(*ends: Sequence[Outcome]) -> KnobFinding:
    """The finding of the one knob, a."""
    (finding,) = found(*ends).knobs
    return finding


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
    assert (finding.names("unstable"), finding.unstable_ends) == (("a",), ("a high",))


@pytest.mark.parametrize(
    ("low", "high", "better"),
    [
        (UP, DOWN, "high"),
        (DOWN, UP, "low"),
        (UP, NOISE, "high"),  # lower than the other end
        (UP, UP, "neither"),
        (UP, FAILED, "neither"),
        (DOWN, FAILED, "low"),
        (NOISE, NOISE, None),
    ],
)
def test_the_better_end_scores_lower_unless_both_are_worse(
    low: Sequence[Outcome], high: Sequence[Outcome], better: str | None
) -> None:
    assert only(low, high).better == better


@pytest.mark.parametrize("point", [(0.0, 1.0), (0.25, 0.5)])
def test_a_point_that_is_no_end_of_one_knob_is_refused(point: tuple[float, ...]) -> None:
    state = checking([point]).state
    with pytest.raises(ValueError, match="candidate 1 is not the baseline with one knob at an end"):
        label(state.plan, state.generations[0], 1)


def test_a_knob_is_pending_until_both_its_ends_are_evaluated() -> None:
    story = checking()
    evaluate(story, SAME, SAME, UP)
    finding = liveness(story.state)
    assert finding is not None
    assert ([f.knob for f in finding.knobs], finding.pending) == (["a"], ("b",))
