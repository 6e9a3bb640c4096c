"""What a search's paid evaluations say of each knob, all else aside."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev

from budgets.state import RunState
from budgets.verdict.finalists import full_ones, mean_score
from orchestrator.analysis.sensitivity import KnobEstimate, estimate_of
from orchestrator.records.planned import space_of
from orchestrator.report.model import Marginal

MOST_BINS = 8
LEAST_IN_A_BIN = 4
"""Candidates: of fewer a standard error says little."""


def marginals(state: RunState) -> tuple[Marginal, ...]:
    """One a knob, in the order of the space; none before a generation is told."""
    samples = list(_samples(state))
    if state.plan.search is None or not samples:
        return ()
    found = estimate_of(state)
    known = {} if found is None else {one.knob: one for one in found.knobs}
    names = [knob.name for knob in space_of(state.plan).knobs]
    return tuple(
        _marginal(name, [(point[place], excess) for point, excess in samples], known.get(name))
        for place, name in enumerate(names)
    )


def _samples(state: RunState) -> Iterator[tuple[tuple[float, ...], float]]:
    """Healthy candidates of full generations, with their scores less their generation's mean."""
    for generation in full_ones(state):
        mean = mean_score(generation)
        for point, score in zip(generation.points, generation.scores(), strict=True):
            if score is not None and mean is not None:
                yield point, score - mean


def _marginal(
    name: str, samples: Sequence[tuple[float, float]], found: KnobEstimate | None
) -> Marginal:
    bins = list(_bins(sorted(samples)))
    return Marginal(
        knob=name,
        units=tuple(unit for unit, _ in samples),
        excess=tuple(excess for _, excess in samples),
        bin_units=tuple(fmean(unit for unit, _ in own) for own in bins),
        bin_means=tuple(fmean(excess for _, excess in own) for own in bins),
        bin_errors=tuple(stdev(excess for _, excess in own) / sqrt(len(own)) for own in bins),
        slope=None if found is None else found.slope.value,
        slope_error=None if found is None else found.slope.error,
        stands=None if found is None else found.stands,
    )


def _bins(ordered: Sequence[tuple[float, float]]) -> Iterator[Sequence[tuple[float, float]]]:
    """Parts as large as each other, or by one; none of too few candidates."""
    count = min(MOST_BINS, len(ordered) // LEAST_IN_A_BIN)
    edges = [round(place * len(ordered) / max(1, count)) for place in range(count + 1)]
    for begin, end in pairwise(edges):
        yield ordered[begin:end]
