"""Which knobs move the score, estimated from evaluations that a search has already paid for.

Within each generation the scores, less their mean, are regressed by ordinary least squares on the
points and, where the evaluations suffice, on their squares, less theirs: what all candidates of a
generation share (its seeds, where the search stood) drops out. A knob so has a slope at the
recommendation, and a bend there: at its optimum it has no slope, however much it matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np
import numpy.typing as npt

from budgets.state import Generation, RunState
from budgets.stats import chance_of, discoveries, two_sided_limit
from budgets.verdict.finalists import full_ones
from orchestrator.records.planned import space_of
from orchestrator.records.recommended import best_point

Array = npt.NDArray[np.float64]

LEAST_FREEDOM = 5
"""Degrees of freedom left for the error: with fewer it is hardly known itself."""

LEAST_SPREAD = 1e-9
"""Of a knob's range: a knob that varied less was not searched."""

ROUNDING = 1e-12
"""Of the largest score: no smaller effect is one."""


@dataclass(frozen=True)
class Coefficient:
    """One number of the regression, in the score's unit."""

    value: float
    error: float  # its standard error
    t: float | None  # the value in standard errors; None where those are 0
    chance: float  # probability of so large a |t| if the knob did nothing
    stands: bool  # too much for chance, all coefficients considered

    @property
    def sureness(self) -> float:
        """|t|; infinite where nothing is left unexplained."""
        if self.t is None:
            return inf if self.value else 0.0
        return abs(self.t)


@dataclass(frozen=True)
class KnobEstimate:
    """What one knob does to the score per standard deviation, all others held."""

    knob: str
    deviation: float  # of its coordinate within the generations: the unit
    slope: Coefficient  # change of the score where it goes up by the unit
    bend: Coefficient | None  # what it costs besides to be a unit off the recommendation

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        return (self.slope,) if self.bend is None else (self.slope, self.bend)

    @property
    def stands(self) -> bool:
        """Whether it moves the score by more than its error leaves to chance."""
        return any(c.stands for c in self.coefficients)


@dataclass(frozen=True)
class Estimate:
    """What the paid evaluations say, the surest knob first."""

    first: int  # generation
    last: int
    evaluations: int  # healthy candidates of these generations
    freedom: int  # degrees of freedom of the error
    noise: float  # sd of what the regression leaves unexplained
    t_limit: float  # |t| beyond it stands above its error
    rate: float  # share of those that do which may be luck
    knobs: tuple[KnobEstimate, ...]

    @property
    def bends(self) -> bool:
        """Whether they sufficed to tell bends."""
        return all(knob.bend is not None for knob in self.knobs)

    def names(self, *, stand: bool) -> tuple[str, ...]:
        """The knobs that stand above their error, or those that do not."""
        return tuple(k.knob for k in self.knobs if k.stands == stand)


def estimate(
    names: Sequence[str],
    generations: Sequence[Generation],
    centre: Sequence[float],
    rate: float,
) -> Estimate | None:
    """Slopes and bends at the point `centre`, over the last half of the finished `generations`.

    Where that is too little, only slopes; over all of them if need be; None if those are too few.
    Generations that a proxy scored do not count. Of the coefficients that stand above their error,
    the share `rate` at most is expected to be luck (see `discoveries`).
    """
    told = [g for g in generations if g.told is not None and not g.changed]
    half = told[-ceil(len(told) / 2) :]
    for window, bends in ((half, True), (half, False), (told, False)):
        if (fit := _fitted(window, np.array(centre) if bends else None)) is not None:
            return _believed(names, window, fit, rate)
    return None


def estimate_of(state: RunState) -> Estimate | None:
    """The same for a search, around what it stands for; None also before a generation is told."""
    point = best_point(state)
    if point is None:
        return None
    names = [knob.name for knob in space_of(state.plan).knobs]
    return estimate(names, full_ones(state), point, state.plan.thresholds.alive_level)


@dataclass(frozen=True)
class _Fit:
    deviations: Array
    values: Array
    errors: Array
    noise: float
    evaluations: int
    freedom: int


def _fitted(window: Sequence[Generation], centre: Array | None) -> _Fit | None:
    """Least squares, with bends around the centre if there is one.

    None where the window does not determine every coefficient and an error.
    """
    samples = [sample for g in window if len((sample := _healthy(g))[1]) > 1]
    if not samples:
        return None
    points = np.concatenate([_centred(points) for points, _ in samples])
    scores = np.concatenate([_centred(scores) for _, scores in samples])
    within = len(scores) - len(samples)  # each generation's mean is estimated too
    deviations = np.sqrt(np.sum(points**2, axis=0) / within)
    if deviations.min() < LEAST_SPREAD:
        return None
    design = points / deviations
    if centre is not None:
        squares = [_centred(((points - centre) / deviations) ** 2) for points, _ in samples]
        design = np.hstack([design, np.concatenate(squares)])
    freedom = within - design.shape[1]
    if freedom < LEAST_FREEDOM or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    q, r = np.linalg.qr(design)
    values = np.linalg.solve(r, q.T @ scores)
    values[np.abs(values) <= ROUNDING * max(np.abs(raw).max() for _, raw in samples)] = 0.0
    noise = float(np.sqrt(np.sum((scores - design @ values) ** 2) / freedom))
    errors = noise * np.linalg.norm(np.linalg.inv(r), axis=1)
    return _Fit(deviations, values, errors, noise, len(scores), freedom)


def _healthy(generation: Generation) -> tuple[Array, Array]:
    """Points and scores of the candidates that have one."""
    pairs = zip(generation.points, generation.scores(), strict=True)
    healthy = [(point, score) for point, score in pairs if score is not None]
    points = np.array([point for point, _ in healthy]).reshape(-1, len(generation.points[0]))
    return points, np.array([score for _, score in healthy])


def _centred(values: Array) -> Array:
    centred: Array = values - values.mean(axis=0)
    return centred


def _believed(
    names: Sequence[str], window: Sequence[Generation], fit: _Fit, rate: float
) -> Estimate:
    """The fit with what may be believed of it."""
    tried = len(fit.values)
    pairs = [(float(v), float(e)) for v, e in zip(fit.values, fit.errors, strict=True)]
    chances = [_chance(value, error, fit.freedom) for value, error in pairs]
    believed = discoveries(chances, rate)
    level = rate * max(believed, 1) / tried
    coefficients = [
        Coefficient(
            value,
            error,
            t=value / error if error else None,
            chance=chance,
            stands=believed > 0 and chance <= level,
        )
        for (value, error), chance in zip(pairs, chances, strict=True)
    ]
    slopes, bends = coefficients[: len(names)], coefficients[len(names) :]
    knobs = [
        KnobEstimate(name, float(fit.deviations[i]), slopes[i], bends[i] if bends else None)
        for i, name in enumerate(names)
    ]
    return Estimate(
        first=window[0].number,
        last=window[-1].number,
        evaluations=fit.evaluations,
        freedom=fit.freedom,
        noise=fit.noise,
        t_limit=two_sided_limit(level, fit.freedom),
        rate=rate,
        knobs=tuple(sorted(knobs, key=lambda knob: -max(c.sureness for c in knob.coefficients))),
    )


def _chance(value: float, error: float, freedom: int) -> float:
    """Of so large a |t|, by Student's t."""
    if error == 0:
        return 0.0 if value else 1.0
    return chance_of(value / error, freedom)
