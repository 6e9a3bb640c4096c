"""What a search's evaluations say of its knobs, and how its distribution grew."""

from collections.abc import Iterator
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from budgets.state import RunState
from budgets.verdict.finalists import full_ones, mean_score
from orchestrator.look.rows import Distribution, Marginal, Spread

if TYPE_CHECKING:
    from orchestrator.look.run import Run

MOST_BINS, LEAST_IN_A_BIN = 8, 4
"""Of fewer candidates a standard error says little."""


def marginals(run: "Run") -> Iterator[Marginal]:
    samples = [
        (point, score - mean)
        for generation in full_ones(run.state)
        if (mean := mean_score(generation)) is not None
        for point, score in zip(generation.points, generation.scores(), strict=True)
        if score is not None
    ]
    if not samples:
        return
    from orchestrator.analysis.sensitivity import estimate_of

    found = estimate_of(run.state)
    known = {} if found is None else {one.knob: one for one in found.knobs}
    for place, knob in enumerate(run.space.knobs):
        own = sorted((point[place], excess) for point, excess in samples)
        bins, estimate = list(_bins(own)), known.get(knob.name)
        yield Marginal(
            knob=knob.name,
            units=tuple(unit for unit, _ in own),
            excess=tuple(excess for _, excess in own),
            bin_units=tuple(fmean(unit for unit, _ in each) for each in bins),
            bin_means=tuple(fmean(excess for _, excess in each) for each in bins),
            bin_errors=tuple(
                stdev(excess for _, excess in each) / sqrt(len(each)) for each in bins
            ),
            slope=None if estimate is None else estimate.slope.value,
            slope_error=None if estimate is None else estimate.slope.error,
            stands=None if estimate is None else estimate.stands,
        )


def _bins(ordered: list[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    """Parts as large as each other, or by one; none of too few candidates."""
    count = min(MOST_BINS, len(ordered) // LEAST_IN_A_BIN)
    edges = [round(place * len(ordered) / max(1, count)) for place in range(count + 1)]
    for begin, end in pairwise(edges):
        yield ordered[begin:end]


def replayed(state: RunState) -> tuple[Distribution | None, str]:
    plan = state.plan
    if plan.search is None:
        return None, f"a {plan.phase} run searches nothing"
    if not state.told:
        return None, "no generation is told yet"
    try:
        from orchestrator.analysis.analyze import by_chance, landscapes  # imports cma
        from orchestrator.records.diverged import ReplayError
        from orchestrator.warm.distribution import is_there, stood_at
    except ImportError as error:
        return None, f"the search cannot be replayed here: {error}"
    try:
        seen = landscapes(state, accept_drift=True)
        chance = by_chance(plan.search, plan.resolved.population, state.finished)
    except (ReplayError, ValueError, ArithmeticError) as error:
        return None, f"the search cannot be replayed here: {error}"
    history = []
    for generation, before, after in zip(state.told, seen, seen[1:], strict=False):
        told = generation.told
        assert told is not None, "it is among those told"
        here = after if is_there(after.favourite, told.favourite) else before
        history.append(
            Spread(
                generation=generation.number,
                step_size=told.sigma,
                axis_ratio=sqrt(here.condition),  # that on record is of a decomposition before it
                deviations=here.deviations,
                mean_point=told.favourite,
            )
        )
    last = stood_at(state, seen)
    found = Distribution(
        history=tuple(history),
        first_deviations=seen[0].deviations,
        correlations=last.correlations,
        eigenvalues=last.eigenvalues,
        axes=last.axes,
        correlation_by_chance=chance.correlation,
        condition_by_chance=chance.condition,
    )
    return found, ""
