"""CMA-ES behind ask, tell and replay. The only module that imports cma.

Every random number of generation g comes from a generator keyed by (seed, g), so a search is a
function of its terms and the fitness it was told: replaying those gives the same search, bit for
bit, and no pickle is needed. (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772.)
"""

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from budgets.events import GenerationTold
from budgets.state import Generation
from budgets.terms import SearchTerms
from orchestrator.landscape import Landscape, landscape
from orchestrator.walk import ReplayError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it misses matplotlib, which nobody asked for
    import cma

Point = tuple[float, ...]
Array = npt.NDArray[np.float64]

REPLAY_TOLERANCE = 1e-9
"""Largest difference between a recorded and a re-asked coordinate that is the same point: other
linear algebra kernels move the last bits, a different search moves far more."""

DRIFT_TOLERANCE = 1e-6
"""The same for what the search's state has become after many generations of such differences."""

LARGEST_CONDITION = 1e10
"""Of a covariance matrix to begin with: beyond it, rounding decides its shortest axes."""


class MirroredOrthogonal:
    """Standard normal directions in mirrored pairs, orthogonal to each other while they can be.

    Called by pycma in place of `numpy.random.randn(rows, dimension)`. Rows 2i and 2i+1 are z and
    -z; within a block of `dimension` pairs the z are orthogonal, each with the length of its own
    normal draw, so every row alone is still standard normal. (Brockhoff et al. 2010, "Mirrored
    Sampling"; Wang, Emmerich and Bäck 2014, "Mirrored Orthogonal Sampling".)
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.begin(0)

    def begin(self, generation: int) -> None:
        """Draw for this generation from now on."""
        entropy = np.random.SeedSequence([self._seed, generation])
        self._rng = np.random.Generator(np.random.Philox(entropy))

    def __call__(self, rows: int, dimension: int) -> Array:
        pairs = -(-rows // 2)
        draws = self._rng.standard_normal((pairs, dimension))
        blocks = [_orthogonal(draws[i : i + dimension]) for i in range(0, pairs, dimension)]
        half = np.concatenate(blocks)
        mirrored: Array = np.stack([half, -half], axis=1).reshape(2 * pairs, dimension)
        return mirrored[:rows]


def _orthogonal(block: Array) -> Array:
    """The rows made orthogonal, uniformly over rotations, each keeping its length."""
    q, r = np.linalg.qr(block.T)
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    lengths = np.linalg.norm(block, axis=1, keepdims=True)
    directions: Array = (q * signs).T * lengths
    return directions


class Search:
    """One CMA-ES search in [0, 1]^d: `ask`, then `tell` once, generation by generation."""

    def __init__(self, terms: SearchTerms, population: int) -> None:
        """Raises ValueError unless the terms' shape, if they have one, is positive definite."""
        self._population = population
        self._seed = terms.seed
        self._randn = MirroredOrthogonal(terms.seed)
        self._es: Any = cma.CMAEvolutionStrategy(
            list(terms.start),
            terms.sigma0,
            {
                "popsize": population,
                "bounds": [0.0, 1.0],
                "randn": self._randn,
                "seed": np.nan,  # leaves NumPy's global generator alone
                "CMA_diagonal": 0,
                "timeout": np.inf,
                "signals_filename": "",
                "verb_log": 0,
                "verb_disp": 0,
                "verbose": -9,
            },
        )
        if terms.shape is not None:
            self._begin_with(np.array(terms.shape))
        self._generation = 0
        self._asked: list[Array] = []

    def _begin_with(self, shape: Array) -> None:
        """Draw the first generation from this covariance matrix instead of the identity."""
        eigenvalues = np.linalg.eigvalsh(shape)
        if not eigenvalues[0] * LARGEST_CONDITION > eigenvalues[-1]:
            raise ValueError(
                "shape: expected a positive definite matrix, got one with eigenvalues from "
                f"{eigenvalues[0]:.3g} to {eigenvalues[-1]:.3g}"
            )
        model = self._es.sm
        apart = np.sqrt(np.diag(model.C))  # within 1e-4 of 1: equal eigenvalues have no one axis
        model.C = shape * np.outer(apart, apart)
        model.update_now(-1)  # decompose it, though nothing was told

    @property
    def generation(self) -> int:
        """Number of the generation that is, or will be, asked."""
        return self._generation

    def ask(self) -> tuple[Point, ...]:
        """The generation's points of the unit cube. Asking twice gives the same points."""
        if not self._asked:
            self._randn.begin(self._generation)
            self._asked = self._es.ask()
        return tuple(tuple(float(u) for u in x) for x in self._asked)

    def distances(self) -> tuple[float, ...]:
        """How far from the mean of its distribution each candidate of `ask` was drawn.

        The Mahalanobis distance: the length of the standard normal draw that the candidate was
        made of, sqrt(d) on average. The bounds bend points afterwards, so it is measured before.
        """
        drawn = MirroredOrthogonal(self._seed)
        drawn.begin(self._generation)
        lengths = np.linalg.norm(drawn(self._population, self._es.N), axis=1)
        return tuple(float(length) for length in lengths)

    def landscape(self) -> Landscape:
        """The search's distribution as it stands: what it has learned, and draws from."""
        es = self._es
        spread = es.sigma * es.sigma_vec.scaling * np.ones(es.N)
        symmetric = (es.sm.C + es.sm.C.T) / 2  # as sampling makes it
        return landscape(
            favourite=tuple(float(u) for u in es.result.xfavorite),
            sigma=float(es.sigma),
            covariance=symmetric * np.outer(spread, spread),
        )

    def tell(self, generation: Generation) -> GenerationTold:
        """Learn from a closed generation, once; says where the search stands afterwards."""
        _compare(generation, self.ask())
        self._learn(generation.fitness())
        return self._told(generation.number)

    def _learn(self, fitness: Sequence[float]) -> None:
        self._es.tell(self._asked, fitness)
        self._asked = []
        self._generation += 1

    def _told(self, generation: int) -> GenerationTold:
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
        favourite = tuple(float(u) for u in es.result.xfavorite)
        ratio = float(max(es.sm.D) / min(es.sm.D))
        return GenerationTold(
            generation=generation,
            digest=digest.hexdigest()[:32],
            favourite=favourite,
            sigma=float(es.sigma),
            axis_ratio=ratio,
        )

    def replay(self, generations: Iterable[Generation], *, accept_drift: bool = False) -> None:
        """Bring the search to where the recorded `generations` left it, checking every step.

        What is told is what was re-asked. `accept_drift` lets pass a state that differs only as
        another processor's linear algebra makes it. Raises ReplayError at the first divergence.
        """
        for generation in generations:
            _compare(generation, self.ask())
            if generation.told is not None:
                _compare_told(generation.told, self.tell(generation), accept_drift=accept_drift)


def landscape_of_noise(terms: SearchTerms, population: int, generations: int) -> Landscape:
    """What such a search would look like after so many generations if no knob did anything.

    The fitness is drawn from a stream of the terms' seed that no direction comes from.
    """
    search = Search(terms, population)
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([terms.seed, 0, 1])))
    for _ in range(generations):
        search.ask()
        search._learn([float(f) for f in rng.standard_normal(population)])
    return search.landscape()


def _compare_told(
    recorded: GenerationTold, replayed: GenerationTold, *, accept_drift: bool
) -> None:
    if recorded == replayed:
        return
    pairs = zip(
        (*recorded.favourite, recorded.sigma), (*replayed.favourite, replayed.sigma), strict=True
    )
    drift = max(abs(a - b) for a, b in pairs)
    if drift > DRIFT_TOLERANCE or recorded.digest == replayed.digest:
        why = f"the search stands {drift:.2g} from where the record says it stood"
        raise ReplayError(recorded.generation, why)
    if not accept_drift:
        why = (
            f"the same search, but not bit for bit (off by {drift:.2g}): --accept-drift goes on "
            "here all the same"
        )
        raise ReplayError(recorded.generation, why)


def _compare(generation: Generation, points: tuple[Point, ...]) -> None:
    recorded = np.array(generation.points)
    replayed = np.array(points)
    if recorded.shape != replayed.shape:
        why = f"{recorded.shape} coordinates are recorded, {replayed.shape} are asked"
        raise ReplayError(generation.number, why)
    difference = np.abs(recorded - replayed)
    if (largest := float(difference.max())) > REPLAY_TOLERANCE:
        candidate = int(difference.max(axis=1).argmax())
        why = f"candidate {candidate} differs by {largest:.2g} from the recorded point"
        raise ReplayError(generation.number, why)
