"""How a search's distribution grew, replayed from its ledger."""

from math import sqrt

from budgets.state import Generation, RunState
from orchestrator.records.diverged import ReplayError
from orchestrator.report.model import Distribution, Spread
from orchestrator.search.landscape import Landscape
from orchestrator.warm.distribution import is_there, stood_at


def distribution(state: RunState) -> tuple[Distribution | None, str]:
    """The distribution after each generation; or None, and why there is none."""
    plan = state.plan
    if plan.search is None:
        return None, f"a {plan.phase} run searches nothing"
    if not state.told:
        return None, "no generation is told yet"
    try:
        from orchestrator.analysis.analyze import by_chance, landscapes  # imports cma
    except ImportError as error:
        return None, f"the search cannot be replayed here: {error}"
    try:
        seen = landscapes(state, accept_drift=True)
        chance = by_chance(plan.search, plan.resolved.population, state.finished)
    except (ReplayError, ValueError, ArithmeticError) as error:
        return None, f"the search cannot be replayed here: {error}"
    last = stood_at(state, seen)
    found = Distribution(
        history=tuple(map(_spread, state.told, seen, seen[1:])),
        first_deviations=seen[0].deviations,
        correlations=last.correlations,
        eigenvalues=last.eigenvalues,
        axes=last.axes,
        correlation_by_chance=chance.correlation,
        condition_by_chance=chance.condition,
    )
    return found, ""


def _spread(generation: Generation, before: Landscape, after: Landscape) -> Spread:
    """Where the generation left it; one that has converged is gone then, and begins anew."""
    told = generation.told
    assert told is not None, "it is among those told"
    seen = after if is_there(after.favourite, told.favourite) else before
    return Spread(
        generation=generation.number,
        sigma=told.sigma,
        axis_ratio=sqrt(seen.condition),  # the one on record is of pycma's last decomposition
        deviations=seen.deviations,
        favourite=told.favourite,
    )
