"""The search: CMA-ES by pycma, guided by a model of all scores so far. Only here cma is imported.

It is a function of its plan and the scores that it was told: replaying those gives the same search
bit for bit, and nothing is pickled.
(Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772.)
"""

import hashlib
import sys
import warnings
from collections.abc import Iterable
from itertools import zip_longest
from types import ModuleType
from typing import Any, cast

import numpy as np

from budgets.events import GenerationTold, Guided
from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.records.runs import ReplayError
from orchestrator.search.arithmetic import NUMPY, Array, chained, eigh, independent
from orchestrator.search.surrogate import Distribution, Point, guided

_UNUSED = {"matplotlib", "matplotlib.pyplot", "scipy.stats"} - sys.modules.keys()
"""pycma imports these if they are installed. No search needs them; they take half of a start."""

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns that matplotlib is missing
    sys.modules.update(dict.fromkeys(_UNUSED, cast("ModuleType", None)))
    try:
        import cma
        import cma.sampler
        import cma.sigma_adaptation
    finally:
        for _name in _UNUSED:
            del sys.modules[_name]

for _module in (cma.evolution_strategy, cma.sampler, cma.sigma_adaptation):
    _module.np = NUMPY  # pycma's own products would not be the same on every processor

LARGEST_STEP = 1 / 3
"""As a share of a knob's range; pycma's own limit."""

INSIDE = 1e-9
"""Least distance of a moved mean from the ends of a range."""


class Search:
    """A search in [0, 1]^d: `ask`, then `tell` once, generation by generation."""

    def __init__(self, plan: SearchPlan, population: int) -> None:
        self._plan = plan
        self._seen: list[Batch] = []  # generations that were told
        self._asked: list[Array] = []  # points of the next one
        draw = chained if plan.method == "guided" else independent
        limits = {"maxstd": np.inf} if len(plan.start) == 1 else {}  # pycma fails at one in 1-d
        self._es: Any = cma.CMAEvolutionStrategy(
            list(plan.start),
            plan.sigma0,
            {
                **limits,
                "CMA_mirrors": 0,  # `draw` decides that, in small populations too
                "popsize": population,
                "bounds": [0.0, 1.0],
                "randn": lambda rows, columns: draw(plan.seed, self.generation, rows, columns),
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

    @property
    def generation(self) -> int:
        """The number of the generation that `ask` returns."""
        return len(self._seen)

    @property
    def distribution(self) -> Distribution:
        """What the points of the next generation are drawn from."""
        es = self._es
        spread = es.sigma * es.sigma_vec.scaling * np.ones(es.N)
        symmetric: Array = (es.sm.C + es.sm.C.T) / 2  # as pycma samples it
        mean = tuple(float(u) for u in es.result.xfavorite)
        return Distribution(mean, float(es.sigma), symmetric * np.outer(spread, spread))

    def ask(self) -> tuple[Point, ...]:
        """Return the generation's points of the unit cube; asking twice gives the same points."""
        if not self._asked:
            self._asked = self._es.ask()
        return tuple(tuple(float(u) for u in x) for x in self._asked)

    def tell(self, generation: Batch) -> GenerationTold:
        """Learn from the asked generation, once; return where the search stands afterwards."""
        return self._follow(generation, self._modelled(self._learn(generation)))

    def replay(self, generations: Iterable[Batch], *, with_models: bool = False) -> None:
        """Bring the search to where the recorded `generations` left it, checking every step.

        Points and state are computed again and compared with the record. The advice of models is
        taken from the record, or computed and compared too with `with_models`. Raises ReplayError
        at the first difference, however small.
        """
        for generation in generations:
            pairs = enumerate(zip_longest(generation.points, self.ask()))
            if others := [place for place, (recorded, asked) in pairs if recorded != asked]:
                why = f"candidate {others[0]} is asked at another point than the recorded one"
                raise ReplayError(generation.number, why)
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
        """Tell pycma; return the step size that the generation was drawn with."""
        es, step = self._es, float(self._es.sigma)
        es.tell(self._asked, generation.fitness())
        if es.N == 1:
            es.sigma = min(es.sigma, LARGEST_STEP / float(np.sqrt(es.sm.C[0, 0])))
        self._asked = []
        self._seen.append(generation)
        return step

    def _modelled(self, step: float) -> Guided | None:
        """Return the advice of a model of all scores; `step` is that of the last generation."""
        if self._plan.method != "guided":
            return None
        return guided(self._seen, self.distribution, step)

    def _follow(self, generation: Batch, advice: Guided | None) -> GenerationTold:
        """Apply the advice; return where the search stands."""
        es = self._es
        if advice is not None:
            inside = np.clip(np.array(advice.centre), INSIDE, 1 - INSIDE)
            unbend = es.boundary_handler.inverse  # to coordinates that it maps to this point
            es.mean = np.array(es.gp.geno(inside, from_bounds=unbend))
            es.sigma = advice.sigma or float(es.sigma)
        return GenerationTold(
            generation=generation.number,
            digest=self._digest(),
            mean=tuple(float(u) for u in es.result.xfavorite),
            sigma=float(es.sigma),
            axis_ratio=float(max(es.sm.D) / min(es.sm.D)),
            guided=advice,
        )

    def _digest(self) -> str:
        """Return a hash of the whole state, which decides all that follows."""
        es, digest = self._es, hashlib.sha256()
        scaling = es.sigma_vec.scaling * np.ones(es.N)
        for part in (es.mean, [es.sigma], es.sm.C, es.pc, es.pc2, es.adapt_sigma.ps, scaling):
            digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
        return digest.hexdigest()[:32]
