"""pycma as its documentation uses it: bounds, a tenth of options, whole generations."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scripts.bench.contenders.api import BestSeen, Contender, Start, Trial
from scripts.bench.problem import Point

SIGMA0 = 0.2
"""Its documentation: about a quarter of the range, or less, where the optimum is expected."""


def strategy(start: Start, sigma0: float, population: int | None) -> Any:
    """A `CMAEvolutionStrategy` in the unit box; without a population, of its own default size."""
    with warnings.catch_warnings(action="ignore"):  # it misses matplotlib
        import cma
    options = {
        "bounds": [0.0, 1.0],
        "seed": np.nan,
        "randn": np.random.RandomState(start.seed).randn,
        "verbose": -9,
        "verb_log": 0,
        "verb_disp": 0,
        "signals_filename": "",
    }
    if population is not None:
        options["popsize"] = population
    return cma.CMAEvolutionStrategy(list(start.default), sigma0, options)


class Pycma:
    """Generation by generation; NaN for a failure, which it takes as the median."""

    def __init__(self, start: Start, sigma0: float, population: int | None, best: bool) -> None:
        self._es = strategy(start, sigma0, population)
        self._default = start.default
        self._asked: list[Any] = []
        self._best = BestSeen(start.default) if best else None

    def ask(self) -> Sequence[Trial]:
        if self._es.stop():
            return ()
        self._asked = self._es.ask()
        return [Trial(tuple(x.tolist())) for x in self._asked]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        if self._best is not None:
            self._best.see(trials, scores)
        if any(score is not None for score in scores):  # of none, it learns nothing
            self._es.tell(self._asked, [np.nan if score is None else score for score in scores])

    def recommend(self) -> Point:
        if self._best is not None:
            return self._best.point
        if self._es.countiter == 0:
            return self._default
        return tuple(float(u) for u in self._es.result.xfavorite)


def pycma(
    *, sigma0: float = SIGMA0, best: bool = False, own_size: bool = False
) -> Callable[[Start], Contender]:
    """Recommends the mean, or the best seen; the tier's population, or its own default size."""

    def make(start: Start) -> Contender:
        population = None if own_size else start.budget.population
        return Pycma(start, sigma0, population, best)

    return make
