"""No search at all: the default, and the best of what was drawn."""

from collections.abc import Callable, Sequence

import numpy as np

from scripts.bench.contenders.api import BestSeen, Start, Trial
from scripts.bench.draws import keyed
from scripts.bench.functions import Array
from scripts.bench.own import reflected
from scripts.bench.problem import Point

Sampler = Callable[[int], Array]
"""The next so many points, one per row."""


class Untouched:
    """Takes the default and spends nothing."""

    def __init__(self, start: Start) -> None:
        self._default = start.default

    def ask(self) -> Sequence[Trial]:
        return ()

    def tell(self, *_: object) -> None:
        """Nothing was asked."""

    def recommend(self) -> Point:
        return self._default


class Sampled:
    """The default first, then a batch of draws a round; recommends the best seen."""

    def __init__(self, start: Start, sampler: Sampler) -> None:
        self._workers, self._sampler = start.budget.workers, sampler
        self._first = [Trial(start.default)]
        self._best = BestSeen(start.default)

    def ask(self) -> Sequence[Trial]:
        more = self._sampler(self._workers - len(self._first))
        trials = self._first + [Trial(tuple(row)) for row in more.tolist()]
        self._first = []
        return trials

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        self._best.see(trials, scores)

    def recommend(self) -> Point:
        return self._best.point


def anywhere(start: Start) -> Sampled:
    """Uniform in the box."""
    rng = keyed("anywhere", start.seed)
    return Sampled(start, lambda count: rng.uniform(size=(count, start.dimension)))


def nearby(start: Start) -> Sampled:
    """Normal around the default with a standard deviation of 0.1, reflected into the box."""
    rng, centre = keyed("nearby", start.seed), np.array(start.default)

    def draw(count: int) -> Array:
        return reflected(centre + 0.1 * rng.standard_normal((count, start.dimension)))

    return Sampled(start, draw)


def sobol(start: Start) -> Sampled:
    """A scrambled Sobol sequence."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(start.dimension, rng=keyed("sobol", start.seed))
    left = iter(sequence.random(2 ** int(np.ceil(np.log2(4 * start.budget.evaluations)))))
    return Sampled(start, lambda count: np.array([next(left) for _ in range(count)]))
