"""CMA-ES by pycma, in [0, 1]^d. The only module that imports cma.

(Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772.)
"""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from orchestrator.search.arithmetic import NUMPY, Array, eigh, orthogonal

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns that matplotlib is missing
    import cma
    import cma.sampler
    import cma.sigma_adaptation

for _module in (cma.evolution_strategy, cma.sampler, cma.sigma_adaptation):
    _module.np = NUMPY  # pycma's own products would not be the same on every processor

Point = tuple[float, ...]

LARGEST_STEP = 1 / 3
"""As a share of a knob's range; pycma's own limit."""

INSIDE = 1e-9
"""Least distance of a moved mean from the ends of a range."""


def independent(seed: int, generation: int, rows: int, dimension: int) -> Array:
    """Return standard normal rows; those of each generation are drawn by a generator of its own."""
    return _generator(seed, generation).standard_normal((rows, dimension))


def chained(seed: int, generation: int, rows: int, dimension: int) -> Array:
    """Return mirrored pairs, orthogonal to each other as long as possible, across generations too.

    Rows 2i and 2i+1 are z and -z; within a block of `dimension` pairs the z are orthogonal, each
    with the length of its own normal draw, so every row alone is still standard normal. (Brockhoff
    et al. 2010, "Mirrored Sampling"; Wang, Emmerich and Bäck 2014, "Mirrored Orthogonal Sampling".)
    A generation of fewer than `dimension` pairs uses some directions of a block, and the next one
    begins with the rest: with 4 pairs in 10 dimensions, three generations cover every direction.
    """
    pairs = -(-rows // 2)
    first = generation * pairs
    blocks = range(first // dimension, (first + pairs - 1) // dimension + 1)
    size = (dimension, dimension)
    draws = (_generator(seed, block).standard_normal(size) for block in blocks)
    chain = np.concatenate([orthogonal(draw) for draw in draws])
    begin = first - blocks[0] * dimension
    half = chain[begin : begin + pairs]
    mirrored: Array = np.stack([half, -half], axis=1).reshape(2 * pairs, dimension)
    return mirrored[:rows]


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))


class Strategy:
    """pycma's evolution strategy: `ask`, then `tell` once, in each generation."""

    def __init__(
        self,
        start: Sequence[float],
        sigma0: float,
        population: int,
        draw: Callable[[int, int, int], Array],
    ) -> None:
        """`draw` returns standard normal directions: of a generation, so many, of a dimension."""
        self._generation = 0
        limits = {"maxstd": np.inf} if len(start) == 1 else {}  # pycma fails at a limit in 1-d
        self._es: Any = cma.CMAEvolutionStrategy(
            list(start),
            sigma0,
            {
                **limits,
                "CMA_mirrors": 0,  # `draw` decides that, in small populations too
                "popsize": population,
                "bounds": [0.0, 1.0],
                "randn": lambda count, dimension: draw(self._generation, count, dimension),
                "seed": np.nan,  # leaves NumPy's global generator alone
                "CMA_diagonal": 0,
                "CMA_eigenmethod": eigh,
                "timeout": np.inf,
                "signals_filename": "",
                "verb_log": 0,
                "verb_disp": 0,
                "verbose": -9,
            },
        )
        self._asked: list[Array] = []

    def ask(self) -> list[Array]:
        """Return the generation's points of the unit cube; asking twice gives the same points."""
        if not self._asked:
            self._asked = self._es.ask()
        return self._asked

    def tell(self, fitness: Sequence[float]) -> None:
        """Learn from the generation that was asked for; once per generation."""
        es = self._es
        es.tell(self._asked, fitness)
        if es.N == 1:
            es.sigma = min(es.sigma, LARGEST_STEP / float(np.sqrt(es.sm.C[0, 0])))
        self._asked = []
        self._generation += 1

    def move(self, point: Sequence[float]) -> None:
        """Move the mean of the distribution to the point, between two generations."""
        inside = np.clip(np.array(point), INSIDE, 1 - INSIDE)
        unbend = self._es.boundary_handler.inverse  # to coordinates that it maps to this point
        self._es.mean = np.array(self._es.gp.geno(inside, from_bounds=unbend))

    @property
    def sigma(self) -> float:
        return float(self._es.sigma)

    @sigma.setter
    def sigma(self, step: float) -> None:
        self._es.sigma = step

    @property
    def axis_ratio(self) -> float:
        """The ratio of the distribution's longest axis to its shortest."""
        return float(max(self._es.sm.D) / min(self._es.sm.D))

    @property
    def mean(self) -> Point:
        """The mean of the distribution, as a point of the unit cube."""
        return tuple(float(u) for u in self._es.result.xfavorite)

    @property
    def covariance(self) -> Array:
        """The covariance in units of the ranges, without the effect of the bounds."""
        es = self._es
        spread = es.sigma * es.sigma_vec.scaling * np.ones(es.N)
        symmetric: Array = (es.sm.C + es.sm.C.T) / 2  # as pycma samples it
        return symmetric * np.outer(spread, spread)

    def digest(self) -> str:
        """Return a hash of the whole state, which decides all that follows."""
        es = self._es
        parts = (
            es.mean,
            [es.sigma],
            es.sm.C,
            es.pc,
            es.pc2,
            es.adapt_sigma.ps,
            es.sigma_vec.scaling * np.ones(es.N),
        )
        digest = hashlib.sha256()
        for part in parts:
            digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
        return digest.hexdigest()[:32]
