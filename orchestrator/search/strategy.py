"""One descent of CMA-ES by pycma, in [0, 1]^d. The only module that imports cma.

(Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772.)
"""

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.search.arithmetic import NUMPY, Array, eigh
from orchestrator.search.directions import Directions
from orchestrator.search.landscape import Landscape, Point, landscape

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it misses matplotlib, which nobody asked for
    import cma
    import cma.sampler
    import cma.sigma_adaptation

for _module in (cma.evolution_strategy, cma.sampler, cma.sigma_adaptation):
    _module.np = NUMPY  # pycma's own products would not be the same on every processor

LARGEST_CONDITION = 1e10
"""Of a covariance matrix to begin with: beyond it, rounding decides its shortest axes."""

LARGEST_STEP = 1 / 3
"""Of a knob's range: pycma's own limit."""

INSIDE = 1e-9
"""How far from an end of a range a mean stays that is put there."""


class Strategy:
    """pycma's evolution strategy: `ask`, then `tell` once, generation by generation."""

    def __init__(
        self,
        start: Sequence[float],
        sigma0: float,
        population: int,
        directions: Directions,
        shape: Sequence[Sequence[float]] | None = None,
    ) -> None:
        """Raises ValueError unless the shape, if there is one, is positive definite."""
        self._directions = directions
        mirrors = {"CMA_mirrors": "popsize < 6" if directions.leaves_mirrors else 0}
        limits = {"maxstd": np.inf} if len(start) == 1 else {}  # which it would fail at
        self._es: Any = cma.CMAEvolutionStrategy(
            list(start),
            sigma0,
            {
                **mirrors,
                **limits,
                "popsize": population,
                "bounds": [0.0, 1.0],
                "randn": self._directions,
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
        self._generation = 0
        self._asked: list[Array] = []
        if shape is not None:
            self._begin_with(np.array(shape))

    def _begin_with(self, shape: Array) -> None:
        """Draw the first generation from this covariance matrix instead of the identity."""
        eigenvalues, _ = eigh(shape)
        if not eigenvalues[0] * LARGEST_CONDITION > eigenvalues[-1]:
            raise ValueError(
                "shape: expected a positive definite matrix, got one with eigenvalues from "
                f"{eigenvalues[0]:.3g} to {eigenvalues[-1]:.3g}"
            )
        model = self._es.sm
        apart = np.sqrt(np.diag(model.C))  # within 1e-4 of 1: equal eigenvalues have no one axis
        model.C = shape * np.outer(apart, apart)
        model.update_now(-1)  # decompose it, though nothing was told

    def propose(self, points: Sequence[Point]) -> None:
        """Let these be the first candidates of the next generation, in place of drawn ones."""
        self._es.inject([self._unbent(point) for point in points], force=True)

    def ask(self) -> list[Array]:
        """The generation's points of the unit cube. Asking twice gives the same points."""
        if not self._asked:
            self._directions.begin(self._generation)
            self._asked = self._es.ask()
        return self._asked

    def tell(self, fitness: Sequence[float]) -> None:
        """Learn from the generation that was asked, once."""
        es = self._es
        es.tell(self._asked, fitness)
        if es.N == 1:
            es.sigma = min(es.sigma, LARGEST_STEP / float(np.sqrt(es.sm.C[0, 0])))
        self._asked = []
        self._generation += 1

    def move(self, point: Sequence[float]) -> None:
        """Put the mean of the distribution there, between two generations."""
        inside = np.clip(np.array(point), INSIDE, 1 - INSIDE)
        self._es.mean = self._unbent(inside)

    def _unbent(self, point: Sequence[float] | Array) -> Array:
        """What the bounds bend into this point of the unit cube."""
        unbend = self._es.boundary_handler.inverse
        return np.array(self._es.gp.geno(np.array(point), from_bounds=unbend))

    @property
    def sigma(self) -> float:
        return float(self._es.sigma)

    @sigma.setter
    def sigma(self, step: float) -> None:
        self._es.sigma = step

    @property
    def axis_ratio(self) -> float:
        """The longest axis of the distribution by its shortest."""
        return float(max(self._es.sm.D) / min(self._es.sm.D))

    @property
    def mean(self) -> Point:
        """The mean of the distribution, as a point of the unit cube."""
        return tuple(float(u) for u in self._es.result.xfavorite)

    @property
    def covariance(self) -> Array:
        """Of the distribution, in units of the ranges, but for how the bounds bend it."""
        es = self._es
        spread = es.sigma * es.sigma_vec.scaling * np.ones(es.N)
        symmetric: Array = (es.sm.C + es.sm.C.T) / 2  # as sampling makes it
        return symmetric * np.outer(spread, spread)

    def landscape(self) -> Landscape:
        """What the distribution has learned, and is drawn from."""
        return landscape(self.mean, self.sigma, self.covariance)

    def digest(self) -> str:
        """Of the whole state: equal when, and hardly ever but when, all that follows is."""
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
