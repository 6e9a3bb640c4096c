"""The search: CMA-ES by pycma, guided by a model of all scores so far.

It is a function of its plan and the scores that it was told: replaying those gives the same search
bit for bit, and nothing is pickled.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np

from budgets.events import GenerationTold, Guided
from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.records.runs import ReplayError
from orchestrator.search.arithmetic import Array, dot, eigh
from orchestrator.search.cma_es import Point, Strategy, chained, independent
from orchestrator.search.surrogate import fit, minimum

MOST_POINTS = 250
"""Most points in a model, nearest to the mean first: its cost grows with their third power."""

REACH = 0.5
"""Largest move of the mean, in standard deviations times the root of the dimension."""

FIRST_STEP = 0.3
"""First step of the descent on the model, in standard deviations."""

TRUSTED = 6
"""Evaluations per knob from which the mean moves all the way; with fewer in proportion."""

LEAST_SIGNAL = 2.0
"""Ratio of the spread of a generation's scores to their noise; below it the step is held."""

LARGEST_HELD = 0.2
"""As a share of a knob's range: a longer step may always shrink to this."""


class Search:
    """A search in [0, 1]^d: `ask`, then `tell` once, generation by generation."""

    def __init__(self, plan: SearchPlan, population: int) -> None:
        self._plan = plan
        self._population = population
        self._seen: list[Batch] = []  # generations that were told
        draw = partial(chained if plan.method == "guided" else independent, plan.seed)
        self._strategy = Strategy(plan.start, plan.sigma0, population, draw)

    @property
    def generation(self) -> int:
        """The number of the generation that `ask` returns."""
        return len(self._seen)

    def ask(self) -> tuple[Point, ...]:
        """Return the generation's points of the unit cube; asking twice gives the same points."""
        return tuple(tuple(float(u) for u in x) for x in self._strategy.ask())

    @property
    def covariance(self) -> Array:
        """The covariance of its distribution, in units of the knobs' ranges."""
        return self._strategy.covariance

    def tell(self, generation: Batch) -> GenerationTold:
        """Learn from a closed generation, once; return where the search stands afterwards."""
        self._check_points(generation)
        return self._follow(generation, self._modelled(self._learn(generation)))

    def replay(self, generations: Iterable[Batch], *, with_models: bool = False) -> None:
        """Bring the search to where the recorded `generations` left it, checking every step.

        Points and state are computed again and compared with the record. The advice of models is
        taken from the record, or computed and compared too with `with_models`. Raises ReplayError
        at the first difference, however small.
        """
        for generation in generations:
            self._check_points(generation)
            if (told := generation.told) is None:
                continue
            step = self._learn(generation)
            if with_models and self._modelled(step) != told.guided:
                why = "the model of all scores does not advise what the record says it advised"
                raise ReplayError(told.generation, why)
            if self._follow(generation, told.guided) != told:
                why = "the search does not stand where the record says it stood"
                raise ReplayError(told.generation, why)

    def _learn(self, generation: Batch) -> float:
        """Tell the strategy; return the step size that the generation was drawn with."""
        step = self._strategy.sigma
        self._strategy.tell(generation.fitness())
        self._seen.append(generation)
        return step

    def _modelled(self, step: float) -> Guided | None:
        """Return the advice of a model of all scores; `step` is that of the last generation."""
        if self._plan.method != "guided":
            return None
        return guided(self._seen, self._population, self._strategy, step)

    def _follow(self, generation: Batch, advice: Guided | None) -> GenerationTold:
        """Apply the advice; return where the search stands."""
        strategy = self._strategy
        if advice is not None:
            strategy.move(advice.centre)
            strategy.sigma = advice.sigma or strategy.sigma
        return GenerationTold(
            generation=generation.number,
            digest=strategy.digest(),
            mean=strategy.mean,
            sigma=strategy.sigma,
            axis_ratio=strategy.axis_ratio,
            guided=advice,
        )

    def _check_points(self, generation: Batch) -> None:
        """Raise ReplayError unless the generation has the points that this search asks for."""
        pairs = enumerate(zip_longest(generation.points, self.ask()))
        other = next((place for place, (recorded, asked) in pairs if recorded != asked), None)
        if other is not None:
            why = f"candidate {other} is asked at another point than the recorded one"
            raise ReplayError(generation.number, why)


def guided(seen: Sequence[Batch], latest: int, strategy: Strategy, before: float) -> Guided | None:
    """Return the advice of a model of the generations `seen`; None if it would fit the noise.

    CMA-ES learns from the ranks within each generation and forgets the scores. A Gaussian process
    over all scores estimates where the function is lowest with much less noise: the mean of the
    distribution moves there. If the scores of a generation differ mostly by noise, the step size
    does not shrink: at a smaller step the same noise would hide more.

    The last generation has `latest` candidates, drawn with the step size `before`. A failed
    candidate has the worst score.
    """
    found = [score for generation in seen for score in generation.to_minimize()]
    healthy = [score for score in found if score is not None]
    points = np.array([point for generation in seen for point in generation.points])
    if len(healthy) < 2 * points.shape[1] + 4:
        return None
    scores = np.array([max(healthy) if score is None else score for score in found])
    generations = np.repeat([g.number for g in seen], [len(g.points) for g in seen])
    centre = np.array(strategy.mean)
    variances, axes = eigh(strategy.covariance)
    deviations = np.sqrt(variances)

    def whitened(where: Array) -> Array:
        white: Array = dot(where - centre, axes) / deviations
        return white

    def unwhitened(where: Array) -> Array:
        point: Array = centre + dot(where * deviations, axes.T)
        return point

    def within(where: Array) -> Array:
        """Clip to the reach, then to the cube, then again: clipping to the cube can lengthen."""
        return _near(whitened(np.clip(unwhitened(_near(where)), 0.0, 1.0)))

    white = whitened(points)
    near = np.argsort(np.square(white).sum(axis=1), kind="stable")[:MOST_POINTS]
    surrogate = fit(white[near], scores[near], generations[near])
    last = white[-latest:]
    starts = np.concatenate([np.zeros((1, len(centre))), last])
    lowest = minimum(surrogate, starts, within, FIRST_STEP)
    trust = min(1.0, len(points) / (TRUSTED * len(centre)))
    moved = np.clip(unwhitened(trust * lowest), 0.0, 1.0)
    signal = float(surrogate(last)[0].std())
    step = min(before, LARGEST_HELD)
    is_held = signal < LEAST_SIGNAL * surrogate.noise and strategy.sigma < step
    return Guided(centre=tuple(float(u) for u in moved), sigma=step if is_held else None)


def _near(where: Array) -> Array:
    """Shorten each point's distance from the mean to the reach."""
    lengths = np.linalg.norm(where, axis=1, keepdims=True)
    near: Array = where * np.minimum(
        1.0, REACH * np.sqrt(where.shape[1]) / np.maximum(lengths, 1e-300)
    )
    return near
