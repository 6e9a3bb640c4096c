"""What a check proves about each knob, from recorded evaluations alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from budgets.events import GenerationAsked, Status
from budgets.liveness import EndEffect, KnobFinding, Liveness, label, liveness
from budgets.plan import Caps, Envelope
from tests.budgets.conftest import Outcome, Story, make_story

SEEDS = (1, 2, 3, 4)
BASELINE = (1.0, 1.1, 0.9, 1.0)
"""Mean 1, sd 0.081650."""
BOTH = ((0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0))
"""Knob a low and high, knob b low and high."""


def checking(points: Sequence[tuple[float, ...]] = BOTH, **fields: Any) -> Story:
    """A check of knobs a and b that asks for the baseline and these points."""
    envelope = Envelope(population=1 + len(points), generations=1, seeds_per_candidate=len(SEEDS))
    terms = {
        "phase": "check",
        "tier": None,
        "resolved": envelope,
        "caps": Caps(evaluations=envelope.evaluations),
        "search": None,
        "calibration": None,
        **fields,
    }
    story = make_story(**terms)
    story.say(GenerationAsked(generation=0, points=((0.5, 0.5), *points), seeds=SEEDS))
    return story


def evaluate(story: Story, candidate: int, outcomes: Sequence[Outcome]) -> None:
    for seed, outcome in zip(SEEDS, outcomes, strict=True):
        story.evaluate(candidate, outcome, seed=seed)


def off_by(*differences: float) -> list[float]:
    return [b + d for b, d in zip(BASELINE, differences, strict=True)]


SAME = off_by(0.0, 0.0, 0.0, 0.0)
WORSE = off_by(1.0, 2.0, 3.0, 4.0)
"""Mean 2.5, standard error 0.6455, t 3.87."""
NOISE = off_by(0.1, -0.1, 0.1, 0.0)
"""Mean 0.025, standard error 0.0479, t 0.52."""
FAILED = [Status.NAN] * 4


def found(
    *ends: Sequence[Outcome], points: Sequence[tuple[float, ...]] = BOTH, **fields: Any
) -> Liveness:
    """What a check finds whose ends gave these outcomes."""
    story = checking(points[: len(ends)], **fields)
    for candidate, outcomes in enumerate((BASELINE, *ends)):
        evaluate(story, candidate, outcomes)
    finding = liveness(story.state)
    assert finding is not None
    return finding


def only(*ends: Sequence[Outcome], **fields: Any) -> KnobFinding:
    """What it finds of its one knob, a."""
    (finding,) = found(*ends, **fields).knobs
    return finding


def end_of(finding: KnobFinding, name: str) -> EndEffect:
    return next(end for end in finding.ends if end.end == name)


# One end


# The verdict on a knob


def test_the_level_is_shared_by_all_ends_that_were_tried() -> None:
    """WORSE has p = 0.0305: enough for one end at 0.05, not for two at 0.025 each."""
    one = only(WORSE, points=BOTH[:1])
    two = only(WORSE, SAME)
    assert (one.verdict, two.verdict) == ("alive", "unproven")
    assert found(WORSE, points=BOTH[:1]).t_limit == pytest.approx(3.182, abs=1e-3)
    assert found(WORSE, SAME).t_limit == pytest.approx(4.177, abs=1e-3)


def test_a_knob_is_dead_when_both_ends_leave_every_score_the_same() -> None:
    last_digits = off_by(0.9e-4, 0.9e-4, 0.8e-4, 0.9e-4)
    more = off_by(0.9e-4, 0.9e-4, 1.1e-4, 0.9e-4)  # 1.1e-4 of 0.9
    assert only(SAME, SAME).verdict == "dead"
    assert only(SAME, last_digits).verdict == "dead"
    assert only(SAME, more).verdict != "dead"


def test_an_end_with_fewer_than_two_healthy_seeds_is_unstable() -> None:
    finding = found(NOISE, [1.0, Status.NAN, Status.OOM, Status.NAN])
    high = end_of(finding.knobs[0], "high")
    assert finding.knobs[0].verdict == "unstable"
    assert high.statuses == {"ok": 1, "nan": 2, "oom": 1}
    assert (high.difference, high.t) == (None, None)
    assert finding.unstable_ends == ("a high",)


UP, DOWN = [2.0, 2.1, 1.9, 2.0], [0.5, 0.6, 0.4, 0.5]


@pytest.mark.parametrize(
    ("low", "high", "better"),
    [
        (UP, DOWN, "high"),
        (DOWN, UP, "low"),
        (UP, NOISE, "high"),  # down to the noise, that is the way to go
        (UP, UP, "neither"),
        (UP, FAILED, "neither"),
        (DOWN, FAILED, "low"),
        (NOISE, NOISE, None),
    ],
)
def test_the_better_end_is_the_one_that_scores_lower_unless_both_are_worse(
    low: Sequence[Outcome], high: Sequence[Outcome], better: str | None
) -> None:
    assert only(low, high).better == better


# The whole check


def test_what_a_point_means_follows_from_the_points() -> None:
    state = checking().state
    labels = [label(state.plan, state.generations[0], c) for c in range(5)]
    assert labels == ["baseline", "a low", "a high", "b low", "b high"]


@pytest.mark.parametrize("point", [(0.0, 1.0), (0.25, 0.5)])
def test_a_point_that_is_no_end_of_one_knob_is_refused(point: tuple[float, ...]) -> None:
    state = checking([point]).state
    with pytest.raises(ValueError, match="candidate 1 is not the baseline with one knob at an end"):
        label(state.plan, state.generations[0], 1)


def test_a_knob_is_pending_until_both_its_ends_are_evaluated() -> None:
    story = checking()
    for candidate in range(3):
        evaluate(story, candidate, SAME)
    evaluate(story, 3, UP)
    finding = liveness(story.state)
    assert finding is not None
    assert ([f.knob for f in finding.knobs], finding.pending) == (["a"], ("b",))
