"""Advice of a model of all scores: where to move the search's mean, whether to hold its step size.

CMA-ES learns from the ranks within each generation and forgets the scores. A Gaussian process over
all scores estimates where the function is lowest with much less noise: after a generation is told,
the mean of the distribution moves there. If the scores of a generation differ mostly by noise, the
step size does not shrink: at a smaller step the same noise would hide more.
"""

from collections.abc import Sequence

import numpy as np

from budgets.events import Guided
from budgets.state import Batch
from orchestrator.search.arithmetic import Array, dot, eigh
from orchestrator.search.strategy import Strategy
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


def guided(seen: Sequence[Batch], latest: int, strategy: Strategy, before: float) -> Guided | None:
    """Return the advice of a model of the generations `seen`; None if it would fit the noise.

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
    signal, noise = float(surrogate(last)[0].std()), surrogate.noise
    step = min(before, LARGEST_HELD)
    is_held = signal < LEAST_SIGNAL * noise and strategy.sigma < step
    return Guided(
        centre=tuple(float(u) for u in moved),
        sigma=step if is_held else None,
        signal=signal * surrogate.scale,
        noise=noise * surrogate.scale,
    )


def _near(where: Array) -> Array:
    """Shorten each point's distance from the mean to the reach."""
    lengths = np.linalg.norm(where, axis=1, keepdims=True)
    near: Array = where * np.minimum(
        1.0, REACH * np.sqrt(where.shape[1]) / np.maximum(lengths, 1e-300)
    )
    return near
