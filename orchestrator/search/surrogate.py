"""What a model of all scores advises: a Gaussian process, which estimates them without noise.

Its kernel is a squared exponential with one length, in coordinates in which the search's
distribution is round: the search has learned the scales and directions. Its hyperparameters are
chosen from a grid by the likelihood: the length, the noise, the share of noise that the evaluations
of a generation have in common (they use the same seeds), and how far the worse half of the scores
is squashed.
(Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5.)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from budgets.events import Guided
from budgets.state import Batch
from orchestrator.search.arithmetic import Array, Tridiagonal, dot, eigh, exp, log

Point = tuple[float, ...]
Whole = npt.NDArray[np.int64]
Whiten = Callable[[Array], Array]

MOST_POINTS = 250
"""Most points in a model, nearest to the mean first: its cost grows with their third power."""

REACH = 0.5
"""Largest move of the mean, in standard deviations times the root of the dimension."""

FIRST_STEP, DESCENT_STEPS = 0.3, 60
"""Of the descent on the model; the first in standard deviations."""

TRUSTED = 6
"""Evaluations per knob from which the mean moves all the way; with fewer in proportion."""

LEAST_SIGNAL = 2.0
"""Ratio of the spread of a generation's scores to their noise; below it the step is held."""

LARGEST_HELD = 0.2
"""As a share of a knob's range: a longer step may always shrink to this."""
LENGTHS = (1.0, 2.0, 4.0, 8.0)
"""Lengths, in standard deviations of the search's distribution times the root of the dimension."""

NOISES = np.cumprod(np.array([1e-10, *[math.sqrt(10)] * 26]))
"""Ratios of the variance of an evaluation's own noise to that of the function."""

SHARED = (0.0, 3.0)
"""Ratios of the variance of the noise that a generation shares to that of an evaluation's own."""

SQUASHED = (1.0, 3.0)
"""Scores above the median grow as a logarithm, in units of these multiples of the range below it;
or as they are."""

OUTLYING = 20.0
"""Scores further above the median than so many times the range below it are cut, like failures.
(With one of 1e6 among 80 scores of a quadratic, the model's lowest point had a median regret of 1.3
instead of 0.04.)"""

LEVEL = 10.0
"""Variance of the function's unknown level: large compared to the function's own of 1."""


# The model


@dataclass(frozen=True)
class Surrogate:
    """The posterior mean of a function, in squashed scores of unit deviation; lower is better."""

    points: Array  # (n, d)
    length: float  # in units of the coordinates
    weights: Array  # (n,)
    noise: float  # standard deviation of an evaluation's own noise
    scale: float  # of one unit, in scores

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Return the mean (m,), up to a constant, and its gradient (m, d) at `points` (m, d)."""
        steps = points[:, None] - self.points[None]
        pulls = exp(-np.square(steps).sum(axis=2) / (2 * self.length**2)) * self.weights
        slopes = (pulls[:, :, None] * steps).sum(axis=1) / self.length**2
        return pulls.sum(axis=1), -slopes


class _Squashed(NamedTuple):
    values: Array  # standardised
    scale: float
    log_slope: float  # sum over the values; makes likelihoods of squashings comparable


def fit(points: Array, scores: Array, generations: Whole) -> Surrogate:
    """Return the likeliest surrogate of `scores` (n,) at `points` (n, d) of `generations` (n,)."""
    dimension = points.shape[1]
    distances = np.square(points[:, None] - points[None]).sum(axis=2)
    squashed = _squashings(scores)
    noises = [_shared_noise(generations, shared) for shared in SHARED]
    found: list[tuple[float, Surrogate]] = []
    for length in (math.sqrt(dimension) * each for each in LENGTHS):
        kernel = exp(-distances / (2 * length**2)) + LEVEL
        for whiten, log_determinant in noises:
            likelihood, rest = _likeliest(kernel, whiten, log_determinant, squashed)
            found.append((likelihood, Surrogate(points, length, *rest)))
    return max(found, key=lambda each: each[0])[1]


def _squashings(scores: Array) -> list[_Squashed]:
    median = np.median(scores)
    good = float(median - scores.min())
    if good > 0:
        scores = np.minimum(scores, scores[scores <= median + OUTLYING * good].max())
    scores = scores - median
    median = np.median(scores)  # not 0 to the last bit
    good = float(median - scores.min())
    found = [_standardised(scores, 0.0)]
    for times in SQUASHED if good > 0 else ():
        excess = np.maximum(scores - median, 0.0) / (times * good)
        logarithms = log(1 + excess)
        values = np.minimum(scores, median) + times * good * logarithms
        found.append(_standardised(values, -float(logarithms.sum())))
    return found


def _standardised(values: Array, log_slope: float) -> _Squashed:
    scale = float(values.std()) or 1.0
    log_slope -= len(values) * float(log(scale))
    return _Squashed((values - values.mean()) / scale, scale, log_slope)


def _shared_noise(generations: Whole, shared: float) -> tuple[Whiten, float]:
    """Return what whitens noise of the covariance I + shared * (same generation), and its
    log-determinant.
    """
    _, places, counts = np.unique(generations, return_inverse=True, return_counts=True)
    members = np.eye(len(counts))[places]  # (n, generations)
    shrunk = (1 - 1 / np.sqrt(1 + shared * counts)) / counts

    def whiten(rows: Array) -> Array:
        sums = dot(members.T, rows)
        white: Array = rows - (sums.T * shrunk).T[places]
        return white

    return whiten, float(log(1 + shared * counts).sum())


def _likeliest(
    kernel: Array, whiten: Whiten, log_determinant: float, squashed: list[_Squashed]
) -> tuple[float, tuple[Array, float, float]]:
    """Return the likelihood, and weights, noise and scale, of the likeliest noise and squashing.

    One decomposition serves all of them.
    """
    count = len(kernel)
    covariance = Tridiagonal.of(whiten(whiten(kernel).T))
    pivots = covariance.pivots(NOISES)
    values = whiten(np.column_stack([each.values for each in squashed]))
    forward = covariance.forward(pivots, covariance.turned(values))  # (n, noises, squashings)
    sizes = np.maximum((forward * forward / pivots[:, :, None]).sum(axis=0) / count, 1e-300)
    log_determinants = log(pivots).sum(axis=0)[:, None] + log_determinant
    log_slopes = np.array([each.log_slope for each in squashed])
    likelihoods = log_slopes - (count * log(sizes) + log_determinants) / 2
    own, squashing = np.unravel_index(likelihoods.argmax(), likelihoods.shape)
    solution = covariance.backward(pivots[:, own], forward[:, own, squashing])
    weights = whiten(covariance.turned(solution[:, None], back=True))[:, 0]
    deviation = math.sqrt(sizes[own, squashing] * NOISES[own])
    scale = squashed[int(squashing)].scale
    return float(likelihoods[own, squashing]), (weights, deviation, scale)


# The advice


class Distribution(NamedTuple):
    """What a search draws its next points from: a normal distribution in the unit cube."""

    mean: Point
    sigma: float  # step size
    covariance: Array  # in units of the knobs' ranges, without the effect of their ends


def guided(seen: Sequence[Batch], drawn_from: Distribution, before: float) -> Guided | None:
    """Return the advice of a model of the generations `seen`; None if it would fit the noise.

    CMA-ES learns from the ranks within each generation and forgets the scores. A Gaussian process
    over all scores estimates where the function is lowest with much less noise: the mean of the
    distribution moves there. If the scores of a generation differ mostly by noise, the step size
    does not shrink: at a smaller step the same noise would hide more.

    The last generation was drawn with the step size `before`. A failed candidate has the worst
    score.
    """
    found = [score for generation in seen for score in generation.to_minimize()]
    healthy = [score for score in found if score is not None]
    points = np.array([point for generation in seen for point in generation.points])
    if len(healthy) < 2 * points.shape[1] + 4:
        return None
    scores = np.array([max(healthy) if score is None else score for score in found])
    generations = np.repeat([g.number for g in seen], [len(g.points) for g in seen])
    centre = np.array(drawn_from.mean)
    variances, axes = eigh(drawn_from.covariance)
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
    last = white[-len(seen[-1].points) :]
    starts = np.concatenate([np.zeros((1, len(centre))), last])
    lowest = minimum(surrogate, starts, within)
    trust = min(1.0, len(points) / (TRUSTED * len(centre)))
    moved = np.clip(unwhitened(trust * lowest), 0.0, 1.0)
    signal = float(surrogate(last)[0].std())
    step = min(before, LARGEST_HELD)
    is_held = signal < LEAST_SIGNAL * surrogate.noise and drawn_from.sigma < step
    return Guided(centre=tuple(float(u) for u in moved), sigma=step if is_held else None)


def _near(where: Array) -> Array:
    """Shorten each point's distance from the mean to the reach."""
    lengths = np.linalg.norm(where, axis=1, keepdims=True)
    near: Array = where * np.minimum(
        1.0, REACH * np.sqrt(where.shape[1]) / np.maximum(lengths, 1e-300)
    )
    return near


def minimum(function: Surrogate, starts: Array, allowed: Callable[[Array], Array]) -> Array:
    """Return the lowest point (d,) found by gradient descent from the `starts` (m, d).

    Each start has its own step, which grows after an improvement and shrinks otherwise; points are
    projected by `allowed`. Of equally low points the one of the earlier start is returned.
    """
    points = allowed(starts)
    values, slopes = function(points)
    steps = np.full(len(points), FIRST_STEP)
    for _ in range(DESCENT_STEPS):
        lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
        moved = allowed(points - steps[:, None] * slopes / np.maximum(lengths, 1e-300))
        there, slopes_there = function(moved)
        better = there < values
        points = np.where(better[:, None], moved, points)
        slopes = np.where(better[:, None], slopes_there, slopes)
        values = np.where(better, there, values)
        steps = steps * np.where(better, 1.5, 0.4)
    lowest: Array = points[int(values.argmin())]
    return lowest
