"""The noise of an evaluation, a function of its seed and its point, as in a real training.

Of real runs' noise a part is common to all candidates on one seed, a part is smooth in the knobs,
so that a fixed seed bends the landscape, and the rest is each evaluation's own.
"""

from functools import lru_cache
from typing import Literal

import numpy as np

from scripts.bench.draws import keyed, normal
from scripts.bench.functions import Array
from scripts.bench.problem import Point

Kind = Literal["white", "shared"]

SHARES: dict[Kind, tuple[float, float, float]] = {
    "white": (0.0, 0.0, 1.0),
    "shared": (0.5, 0.3, 0.2),
}
"""Of the variance: common to the seed, smooth in the point, the evaluation's own."""

WAVES = 64
LENGTH = 0.18
"""Of the smooth part: as measured on trainings, correlation 0.2 at a distance of 0.1 per knob."""


def noise(key: str, kind: Kind, point: Point, seed: int) -> float:
    """Of standard deviation 1."""
    common, smooth, own = SHARES[kind]
    total: float = own**0.5 * normal(key, "own", seed, point)
    if common:
        total += common**0.5 * normal(key, "common", seed)
    if smooth:
        total += smooth**0.5 * _smooth(key, point, seed)
    return total


def _smooth(key: str, point: Point, seed: int) -> float:
    waves, phases = _field(key, len(point), seed)
    return float(np.sqrt(2 / WAVES) * np.sum(np.cos(waves @ np.array(point) + phases)))


@lru_cache(maxsize=32)
def _field(key: str, dimension: int, seed: int) -> tuple[Array, Array]:
    """Random Fourier features (A. Rahimi and B. Recht, NIPS 2007) of a Gaussian process."""
    rng = keyed(key, "smooth", seed)
    waves = rng.standard_normal((WAVES, dimension)) / LENGTH
    return waves, rng.uniform(0, 2 * np.pi, WAVES)
