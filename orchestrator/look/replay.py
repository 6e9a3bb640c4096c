"""A search replayed from its ledger: its distribution, and what pure noise would show."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from budgets.terms import SearchTerms
from orchestrator.search import landscape_of_noise

REPEATS = 19
"""Searches on pure noise: one search in twenty shows more than all of them by chance."""


@dataclass(frozen=True)
class ByChance:
    """What a search of the same size shows on pure noise; one in twenty shows more."""

    correlation: float  # the strongest, whatever its sign
    condition: float  # of the covariance matrix


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
