"""The rule about NaNs: whether an extreme region explains them, and what they have in common.

A candidate is extreme where it lies near an end of a knob's range and the search's start does not,
or where it is an outlier of the distribution it was drawn from. NaNs there are the landscape's, and
the search learns to avoid them. NaNs elsewhere are a defect, or a region that nobody knew of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt

from budgets.events import Status
from budgets.rules.apart import Point, beyond, knob_name, latest_points, luck, remedy, told_apart
from budgets.rules.table import SUSTAINED_NAN, Reading, counted_in
from budgets.state import Generation, RunState
from budgets.terms import Plan
from budgets.words import listed

NAMED = 3
"""Candidates that evidence names one by one."""


@dataclass(frozen=True, slots=True)
class NanCandidate:
    """A candidate with NaN evaluations, and where it lies."""

    candidate: int
    evaluations: int  # that are NaN
    distance: float | None  # from what it was drawn of, Mahalanobis; None in older ledgers
    ends: tuple[str, ...]  # knobs near an end that the search's start is not near
    shared_ends: tuple[str, ...]  # ... and those where the start is near it too
    is_outlier: bool

    @property
    def is_explained(self) -> bool:
        return bool(self.ends) or self.is_outlier

    def __str__(self) -> str:
        parts = [] if self.distance is None else [f"{self.distance:.1f} from the mean"]
        parts += [f"{end} end" for end in self.ends]
        parts += [f"{end} end, as the start" for end in self.shared_ends]
        return f"{self.candidate} ({', '.join(parts)})" if parts else str(self.candidate)


def nan_candidates(plan: Plan, generation: Generation) -> list[NanCandidate]:
    """Candidates of the generation with a NaN among their final results, in their order."""
    nans = [r.candidate for r in generation.results() if r.status is Status.NAN]
    return [_placed(plan, generation, c, len(list(same))) for c, same in groupby(nans)]


def _placed(plan: Plan, generation: Generation, candidate: int, evaluations: int) -> NanCandidate:
    point, limits = generation.points[candidate], plan.thresholds
    start = plan.search.start if plan.search is not None else generation.points[0]
    common = _ends(start, limits.edge)
    ends = _ends(point, limits.edge)
    distance = generation.distances[candidate] if generation.distances else None
    return NanCandidate(
        candidate,
        evaluations,
        distance,
        tuple(f"{knob_name(plan, i)} near its {end}" for i, end in ends if (i, end) not in common),
        tuple(f"{knob_name(plan, i)} near its {end}" for i, end in ends if (i, end) in common),
        distance is not None and distance > sqrt(len(point)) + limits.far,
    )


def _ends(point: Point, edge: float) -> list[tuple[int, str]]:
    """Which coordinates of a point lie within `edge` of an end, and of which."""
    low = [(i, "low") for i, unit in enumerate(point) if unit <= edge]
    return low + [(i, "high") for i, unit in enumerate(point) if unit >= 1 - edge]


def sustained_nan(state: RunState, generation: Generation) -> Reading:
    """NaNs that no extreme region explains: many in the generation, or some in several running.

    Counted against all evaluations the generation will have, as soon as it can no longer be
    avoided. Generations that an override let through do not count among those running.
    """
    limits, number = state.plan.thresholds, generation.number
    nans = nan_candidates(state.plan, generation)
    unexplained = [n for n in nans if not n.is_explained]
    count = sum(n.evaluations for n in unexplained)
    counted, share, rate = counted_in(generation, count)
    running = _running(state, generation)
    said = f"{counted} are NaN where no extreme region explains it"
    if rate > limits.nan_rate_pause and count >= limits.nan_count_pause:
        evidence = f"{said} ({share}, limit {limits.nan_rate_pause:.0%})"
        evidence += _details(state, generation, nans)
        if state.plan.search is None:
            seeds = f"{count} of {len(generation.results())} seeds"
            evidence = f"the baseline itself scores NaN ({seeds}): nothing can be compared with it"
        return SUSTAINED_NAN.reads(number, rate, limits.nan_rate_pause, evidence, fires=True)
    if running >= limits.nan_generations_pause:
        evidence = (
            f"each of the last {running} generations (limit {limits.nan_generations_pause}) has "
            f"NaNs that no extreme region explains; {said}{_details(state, generation, nans)}"
        )
        limit = limits.nan_generations_pause
        return SUSTAINED_NAN.reads(number, running, limit, evidence, fires=True)
    explained = sum(n.evaluations for n in nans) - count
    evidence = (
        f"{said} ({share}, limit {limits.nan_rate_pause:.0%}, "
        f"{limits.nan_count_pause} at least), in {running} of as many generations running (limit "
        f"{limits.nan_generations_pause}); {explained} more NaNs lie in an extreme region"
    )
    return SUSTAINED_NAN.reads(number, rate, limits.nan_rate_pause, evidence, fires=False)


def _running(state: RunState, generation: Generation) -> int:
    """Generations up to this one, without a gap, with a NaN that nothing explains: up to the limit.

    None from before an override of an earlier one.
    """
    passed = (o.generation for o in state.overridden if o.rule == SUSTAINED_NAN.name)
    first = max((n + 1 for n in passed if n < generation.number), default=0)
    most = state.plan.thresholds.nan_generations_pause
    count = 0
    for number in range(generation.number, first - 1, -1):
        nans = nan_candidates(state.plan, state.generation(number))
        if count == most or all(n.is_explained for n in nans):
            break
        count += 1
    return count


def _details(state: RunState, generation: Generation, nans: Sequence[NanCandidate]) -> str:
    """Which candidates, where they lie, and what tells them from the healthy ones."""
    text = f": candidates {listed((n for n in nans if not n.is_explained), NAMED + 1)}"
    if explained := [n for n in nans if n.is_explained]:
        text += f"; explained: {listed(explained, NAMED + 1)}"
    found = told_apart(*latest_points(state, generation, {Status.NAN}))
    if found is None:
        return text
    return (
        f"{text}. {knob_name(state.plan, found.place)} tells them from the healthy ones best"
        f"{luck(found, len(generation.points[0]))}: {found.failed} of {found.all_failed} NaN "
        f"candidates and {found.healthy} of {found.all_healthy} healthy ones lie "
        f"{beyond(state.plan, found)}{remedy(state.plan, found)}"
    )
