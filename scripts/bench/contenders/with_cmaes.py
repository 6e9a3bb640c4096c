"""The `cmaes` library as its README uses it, with the tier's population."""

from collections.abc import Callable, Sequence

import numpy as np

from scripts.bench.contenders.api import Contender, Start, Trial
from scripts.bench.problem import Point

SIGMA0 = 0.2


class Cmaes:
    """Generation by generation; a failure counts as infinitely bad. Recommends the mean."""

    def __init__(self, start: Start, lr_adapt: bool) -> None:
        from cmaes import CMA

        self._default, self._told = start.default, False
        self._cma = CMA(
            mean=np.array(start.default),
            sigma=SIGMA0,
            bounds=np.tile([0.0, 1.0], (start.dimension, 1)),
            population_size=start.budget.population,
            seed=start.seed,
            lr_adapt=lr_adapt,
        )

    def ask(self) -> Sequence[Trial]:
        if self._cma.should_stop():
            return ()
        asked = [self._cma.ask() for _ in range(self._cma.population_size)]
        return [Trial(tuple(x.tolist())) for x in asked]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        values = [np.inf if score is None else score for score in scores]
        pairs = zip((np.array(t.point) for t in trials), values, strict=True)
        self._cma.tell(list(pairs))
        self._told = True

    def recommend(self) -> Point:
        if not self._told:
            return self._default
        return tuple(np.clip(self._cma.mean, 0, 1).tolist())


def cmaes(*, lr_adapt: bool) -> Callable[[Start], Contender]:
    """With or without its adapted learning rate (M. Nomura, Y. Akimoto, I. Ono, GECCO 2023)."""
    return lambda start: Cmaes(start, lr_adapt)
