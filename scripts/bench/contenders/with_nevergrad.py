"""Nevergrad's NGOpt: it picks the method by dimension, budget and workers."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scripts.bench.contenders.api import Contender, Start, Trial
from scripts.bench.problem import Point


class Nevergrad:
    """W candidates a round; a failure is infinitely bad. Takes what it recommends.

    Version 1.0.12 raises a TypeError on NumPy 2.4 when it fits its model: 2.2 will do.
    """

    def __init__(self, start: Start) -> None:
        with warnings.catch_warnings(action="ignore"):
            import nevergrad

            space = nevergrad.p.Array(init=np.array(start.default)).set_bounds(0.0, 1.0)
            space.random_state.seed(start.seed)
            self._optimizer: Any = nevergrad.optimizers.NGOpt(
                parametrization=space,
                budget=start.budget.evaluations,
                num_workers=start.budget.workers,
            )
        self._start, self._told = start, False
        self._running: list[Any] = []

    def ask(self) -> Sequence[Trial]:
        with warnings.catch_warnings(action="ignore"):
            self._running = [self._optimizer.ask() for _ in range(self._start.budget.workers)]
        return [Trial(tuple(candidate.value.tolist())) for candidate in self._running]

    def tell(self, _: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        with warnings.catch_warnings(action="ignore"):
            for candidate, score in zip(self._running, scores, strict=True):
                self._optimizer.tell(candidate, np.inf if score is None else score)
        self._told = True

    def recommend(self) -> Point:
        if not self._told:
            return self._start.default
        with warnings.catch_warnings(action="ignore"):
            return tuple(self._optimizer.recommend().value.tolist())


def nevergrad() -> Callable[[Start], Contender]:
    return Nevergrad
