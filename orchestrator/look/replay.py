"""A search replayed from its ledger: its distribution, and what pure noise would show."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from budgets.state import RunState
from budgets.terms import SearchTerms
from orchestrator.search import Search, landscape_of_noise
from orchestrator.search.landscape import Landscape

REPEATS = 19
"""Searches on pure noise: one search in twenty shows more than all of them by chance."""


@dataclass(frozen=True)
class ByChance:
    """What a search of the same size shows on pure noise; one in twenty shows more."""

    correlation: float  # the strongest, whatever its sign
    condition: float  # of the covariance matrix


def landscapes(state: RunState, *, accept_drift: bool = False) -> list[Landscape]:
    """The search's distribution as it began, and after each generation that was told.

    Raises ReplayError where the replay diverges.
    """
    plan = state.plan
    assert plan.search is not None, "only a search is replayed"
    search = Search(plan.search, plan.resolved.population)
    seen = [search.landscape()]
    for generation in state.generations:
        search.replay([generation], accept_drift=accept_drift)
        if generation.told is not None:
            seen.append(search.landscape())
    return seen


@lru_cache(maxsize=8)
def by_chance(terms: SearchTerms, population: int, generations: int) -> ByChance:
    """What searches of that size show of knobs that do nothing."""
    seeds = range(1, REPEATS + 1)
    with threadpool_limits(1):  # in 40 knobs threads waiting for each other take six times as long
        seen = [
            landscape_of_noise(terms.model_copy(update={"seed": seed}), population, generations)
            for seed in seeds
        ]
    apart = [np.array(one.correlations) - np.eye(len(terms.start)) for one in seen]
    return ByChance(
        correlation=max(float(np.abs(matrix).max()) for matrix in apart),
        condition=max(one.condition for one in seen),
    )
