"""pycma's lq-CMA-ES: a linear or quadratic model in place of most evaluations.

What `cma.fmin_lq_surr2` does, as a generator that asks for its evaluations: the library's own loop
calls the objective, one point after another, so W - 1 workers have nothing to do. `in_blocks`
evaluates together what the loop would evaluate before it looks at the model again. (N. Hansen, "A
Global Surrogate Assisted CMA-ES", GECCO 2019.)
"""

from collections.abc import Callable, Generator, Sequence
from math import ceil
from typing import Any

import numpy as np

from scripts.bench.contenders.api import BestSeen, Contender, Start, Trial
from scripts.bench.contenders.with_pycma import SIGMA0, strategy
from scripts.bench.problem import Point

Asking = Generator[list[Any], list[float], Any]
"""Gives points, is sent their scores."""


class _Pool:
    """A generation's points, some of them evaluated, all of them in the model's eyes."""

    def __init__(self, points: list[Any], surrogate: Any) -> None:
        self._points, self._surrogate = points, surrogate
        self._scores: dict[int, float] = {}

    def evaluate(self, count: int, in_blocks: bool) -> Asking:
        """Until `count` are, those first that the model thinks best."""
        model = self._surrogate.model
        order = list(range(len(self._points)))
        if model.size > 1:
            order = np.argsort([model.eval(x) for x in self._points]).tolist()
        places = [p for p in order if p not in self._scores][: count - len(self._scores)]
        blocks = [places] if in_blocks else [[place] for place in places]
        for block in blocks:
            scores = yield [self._points[place] for place in block]
            for place, score in zip(block, scores, strict=True):
                self._scores[place] = score
                model.add_data_row(self._points[place], score)

    @property
    def evaluated(self) -> int:
        return len(self._scores)

    @property
    def is_complete(self) -> bool:
        return len(self._scores) == len(self._points)

    def values(self) -> list[float]:
        """True ones if all are known; otherwise the model's, its best raised to the best true."""
        if self.is_complete:
            return [self._scores[place] for place in range(len(self._points))]
        modelled = np.array([self._surrogate.model.eval(x) for x in self._points])
        return list(modelled - np.nanmin(modelled) + np.nanmin(list(self._scores.values())))


def generation(points: list[Any], surrogate: Any, in_blocks: bool) -> Asking:
    """The values of one generation, with as few evaluations as the model's ranking allows."""
    model, settings = surrogate.model, surrogate.settings
    room = settings.model_max_size_factor * len(points)
    model.settings.max_absolute_size = max(room, model.settings.max_absolute_size)
    pool = _Pool(points, surrogate)
    enough = 3 / model.settings.truncation_ratio - model.size
    count = int(1 + max(len(points) * settings.min_evals_percent / 100, enough))
    tau = 0.0
    while not pool.is_complete:
        yield from pool.evaluate(count, in_blocks)
        model.sort(count)
        tau = model.kendall(settings.n_for_tau(len(points), pool.evaluated))
        share = pool.evaluated / len(points)
        if tau >= settings.tau_truth_threshold - settings.tau_truth_threshold_correction * share:
            break
        count += ceil(count / 2)
    model.sort(settings.model_sort_globally or pool.evaluated)
    model.adapt_max_relative_size(tau)
    return pool.values()


class Surrogate:
    """The search, turned inside out so that it can be asked."""

    def __init__(self, start: Start, in_blocks: bool) -> None:
        from cma.fitness_models import SurrogatePopulation

        self._es = strategy(start, SIGMA0, None)
        self._best = BestSeen(start.default)
        self._worst = 0.0
        self._asking = self._search(SurrogatePopulation(None), in_blocks)
        self._asked = next(self._asking)

    def _search(self, surrogate: Any, in_blocks: bool) -> Generator[list[Any], list[float], None]:
        while not self._es.stop():
            points = self._es.ask()
            values = yield from generation(points, surrogate, in_blocks)
            self._es.tell(points, values)
            self._es.inject([surrogate.model.xopt])

    def ask(self) -> Sequence[Trial]:
        return [Trial(tuple(float(u) for u in x)) for x in self._asked]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        """A failure counts as the worst score so far: a regression takes neither NaN nor 1e9."""
        self._best.see(trials, scores)
        self._worst = max([self._worst, *(score for score in scores if score is not None)])
        told = [self._worst if score is None else score for score in scores]
        try:
            self._asked = self._asking.send(told)
        except StopIteration:
            self._asked = []

    def recommend(self) -> Point:
        return self._best.point


def surrogate(*, in_blocks: bool) -> Callable[[Start], Contender]:
    """With evaluations one at a time as the library's loop has it, or in blocks."""
    return lambda start: Surrogate(start, in_blocks)
