"""What a search's evaluations say of its knobs, and how its distribution grew."""

from collections.abc import Iterator
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from budgets.state import RunState
from budgets.verdict.finalists import full_ones, mean_score
from orchestrator.look.rows import Distribution, Marginal, Spread
from orchestrator.records.diverged import ReplayError

if TYPE_CHECKING:
    from orchestrator.look.run import Run

MOST_BINS, LEAST_IN_A_BIN = 8, 4  # of fewer candidates a standard error says little


def marginals(run: "Run") -> Iterator[Marginal]:
    """One a knob; none before a candidate has a score."""
    samples = [
        (point, score - mean)
        for generation in full_ones(run.state)
        if (mean := mean_score(generation)) is not None
        for point, score in zip(generation.points, generation.scores(), strict=True)
        if score is not None
    ]
    if not samples:
        return
    from orchestrator.look.sensitivity import estimate_of  # imports numpy

    found = estimate_of(run.state)
    known = {} if found is None else {one.knob: one for one in found.knobs}
    for place, knob in enumerate(run.space.knobs):
        own = sorted((point[place], excess) for point, excess in samples)
        units, excess = zip(*own, strict=True)
        bins, estimate = list(_bins(len(own))), known.get(knob.name)
        yield Marginal(
            knob=knob.name,
            units=units,
            excess=excess,
            bin_units=tuple(fmean(units[one]) for one in bins),
            bin_means=tuple(fmean(excess[one]) for one in bins),
            bin_errors=tuple(stdev(excess[one]) / sqrt(len(excess[one])) for one in bins),
            slope=None if estimate is None else estimate.slope.value,
            slope_error=None if estimate is None else estimate.slope.error,
            stands=None if estimate is None else estimate.stands,
        )


def _bins(samples: int) -> Iterator[slice]:
    """Parts as large as each other, or by one; none of too few candidates."""
    count = min(MOST_BINS, samples // LEAST_IN_A_BIN)
    edges = [round(place * samples / max(1, count)) for place in range(count + 1)]
    return (slice(*edge) for edge in pairwise(edges))


def replayed(state: RunState) -> tuple[Distribution | None, str]:
    """The distribution after each generation; or None, and why there is none."""
    plan = state.plan
    if plan.search is None:
        return None, f"a {plan.phase} run searches nothing"
    if not state.told:
        return None, "no generation is told yet"
    try:
        from orchestrator.look.replay import by_chance  # imports cma
        from orchestrator.warm_start import is_there, landscapes, stood_at

        seen = landscapes(state, accept_drift=True)
        chance = by_chance(plan.search, plan.resolved.population, state.finished)
    except (ImportError, ReplayError, ValueError, ArithmeticError) as error:
        return None, f"the search cannot be replayed here: {error}"
    history = []
    for generation, before, after in zip(state.told, seen, seen[1:], strict=False):
        told = generation.told
        assert told is not None, "it is among those told"
        here = after if is_there(after.favourite, told.favourite) else before
        ratio = sqrt(here.condition)  # that on record is of a decomposition before it
        spread = Spread(generation.number, told.sigma, ratio, here.deviations, told.favourite)
        history.append(spread)
    last = stood_at(state, seen)
    found = Distribution(
        history=tuple(history),
        correlations=last.correlations,
        correlation_by_chance=chance.correlation,
        condition_by_chance=chance.condition,
    )
    return found, ""
