"""Who races: the product's search, and its peers in the loop that their users would write."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from budgets.plan import Configuration, SearchMethod, SearchTerms
from budgets.state import Batch, RunState
from budgets.verdict import stood_for
from orchestrator.plan.resolve import SIGMA0 as FIRST_STEPS
from orchestrator.search import Search
from scripts.bench.problems import VERSION, Array, Point, keyed, reflected
from scripts.bench.race import BestSeen, Contender, Start, Trial


@dataclass(slots=True, kw_only=True)
class _Scored(Batch):
    """Scores without attempts."""

    found: tuple[float | None, ...]

    def scores(self) -> list[float | None]:
        return list(self.found)


@dataclass(slots=True)
class _Story:
    """Of a run's state, what its recommendation is made from."""

    completed: list[Batch] = field(default_factory=list)


class Ours:
    """P candidates a generation, on one seed; recommends what the search stands for."""

    def __init__(self, start: Start, method: SearchMethod, sigma0: float) -> None:
        terms = SearchTerms(method=method, seed=start.seed, sigma0=sigma0, start=start.default)
        self._search = Search(terms, start.budget.population)
        self._default, self._story = start.default, _Story()
        self._is_paused = False

    def ask(self) -> Sequence[Trial]:
        if self._is_paused:
            return ()
        batch = self._search.generation
        return [Trial(point, batch=batch) for point in self._search.ask()]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        if all(score is None for score in scores):
            self._is_paused = True  # as a run is, when nothing of a generation is healthy
            return
        tried = tuple(Configuration(name="", point=trial.point) for trial in trials)
        number, found = self._search.generation, tuple(scores)
        seeds = ((1,),) * len(tried)
        generation = _Scored(None, number, tried, seeds, found=found)
        told = self._search.tell(generation)
        self._story.completed.append(replace(generation, told=told))

    def recommend(self) -> Point:
        return stood_for(cast("RunState", self._story)) or self._default


def ours(method: SearchMethod) -> Callable[[Start], Contender]:
    """By its method."""
    return lambda start: Ours(start, method, FIRST_STEPS[method])


Sampler = Callable[[int], Array]
"""The next so many points, one per row."""


class Untouched:
    """Takes the default and spends nothing."""

    def __init__(self, start: Start) -> None:
        self._default = start.default

    def ask(self) -> Sequence[Trial]:
        return ()

    def tell(self, *_: object) -> None:
        """Nothing was asked."""

    def recommend(self) -> Point:
        return self._default


class Sampled:
    """The default first, then a batch of draws a round; recommends the best seen."""

    def __init__(self, start: Start, sampler: Sampler) -> None:
        self._workers, self._sampler = start.budget.workers, sampler
        self._first = [Trial(start.default)]
        self._best = BestSeen(start.default)

    def ask(self) -> Sequence[Trial]:
        more = self._sampler(self._workers - len(self._first))
        trials = self._first + [Trial(tuple(row)) for row in more.tolist()]
        self._first = []
        return trials

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        self._best.see(trials, scores)

    def recommend(self) -> Point:
        return self._best.point


def anywhere(start: Start) -> Sampled:
    """Uniform in the box."""
    rng = keyed("anywhere", start.seed)
    return Sampled(start, lambda count: rng.uniform(size=(count, start.dimension)))


def nearby(start: Start) -> Sampled:
    """Normal around the default with a standard deviation of 0.1, reflected into the box."""
    rng, centre = keyed("nearby", start.seed), np.array(start.default)

    def draw(count: int) -> Array:
        return reflected(centre + 0.1 * rng.standard_normal((count, start.dimension)))

    return Sampled(start, draw)


SIGMA0 = 0.2
"""Its documentation: about a quarter of the range, or less, where the optimum is expected."""


def strategy(start: Start, sigma0: float) -> Any:
    """A `CMAEvolutionStrategy` in the unit box, with the tier's population."""
    with warnings.catch_warnings(action="ignore"):  # it misses matplotlib
        import cma
    options = {
        "bounds": [0.0, 1.0],
        "seed": np.nan,
        "randn": np.random.RandomState(start.seed).randn,
        "verbose": -9,
        "verb_log": 0,
        "verb_disp": 0,
        "signals_filename": "",
        "popsize": start.budget.population,
    }
    return cma.CMAEvolutionStrategy(list(start.default), sigma0, options)


class Pycma:
    """Batch by generation; NaN for a failure, which it takes as the median."""

    def __init__(self, start: Start, sigma0: float, best: bool) -> None:
        self._es = strategy(start, sigma0)
        self._default = start.default
        self._asked: list[Any] = []
        self._best = BestSeen(start.default) if best else None

    def ask(self) -> Sequence[Trial]:
        if self._es.stop():
            return ()
        self._asked = self._es.ask()
        return [Trial(tuple(x.tolist())) for x in self._asked]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        if self._best is not None:
            self._best.see(trials, scores)
        if any(score is not None for score in scores):  # of none, it learns nothing
            self._es.tell(self._asked, [np.nan if score is None else score for score in scores])

    def recommend(self) -> Point:
        if self._best is not None:
            return self._best.point
        if self._es.countiter == 0:
            return self._default
        return tuple(float(u) for u in self._es.result.xfavorite)


def pycma(*, sigma0: float = SIGMA0, best: bool = False) -> Callable[[Start], Contender]:
    """Recommends the mean, or the best seen."""
    return lambda start: Pycma(start, sigma0, best)


class Cmaes:
    """Batch by generation; a failure counts as infinitely bad. Recommends the mean."""

    def __init__(self, start: Start, lr_adapt: bool) -> None:
        from cmaes import CMA

        self._default, self._told = start.default, False
        self._cma = CMA(
            mean=np.array(start.default),
            sigma=SIGMA0,
            bounds=np.tile([0.0, 1.0], (start.dimension, 1)),
            population_size=start.budget.population,
            seed=start.seed,
            lr_adapt=lr_adapt,
        )

    def ask(self) -> Sequence[Trial]:
        if self._cma.should_stop():
            return ()
        asked = [self._cma.ask() for _ in range(self._cma.population_size)]
        return [Trial(tuple(x.tolist())) for x in asked]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        values = [np.inf if score is None else score for score in scores]
        pairs = zip((np.array(t.point) for t in trials), values, strict=True)
        self._cma.tell(list(pairs))
        self._told = True

    def recommend(self) -> Point:
        if not self._told:
            return self._default
        return tuple(np.clip(self._cma.mean, 0, 1).tolist())


def cmaes(*, lr_adapt: bool) -> Callable[[Start], Contender]:
    """With or without its adapted learning rate (M. Nomura, Y. Akimoto, I. Ono, GECCO 2023)."""
    return lambda start: Cmaes(start, lr_adapt)


class Optuna:
    """W trials a round, told together; a failure is a trial of state FAIL. Takes the best seen.

    The default is the first trial, as a user who has one would enqueue it; CMA-ES has it as x0.
    """

    def __init__(self, start: Start, sampler: Any, enqueue: bool) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._failed = optuna.trial.TrialState.FAIL
        self._study = optuna.create_study(sampler=sampler)
        self._start = start
        self._names = [f"x{knob}" for knob in range(start.dimension)]
        if enqueue:
            self._study.enqueue_trial(dict(zip(self._names, start.default, strict=True)))
        self._running: list[Any] = []

    def ask(self) -> Sequence[Trial]:
        with warnings.catch_warnings(action="ignore"):
            self._running = [self._study.ask() for _ in range(self._start.budget.workers)]
            return [Trial(self._suggested(trial)) for trial in self._running]

    def _suggested(self, trial: Any) -> Point:
        return tuple(trial.suggest_float(name, 0.0, 1.0) for name in self._names)

    def tell(self, _: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        with warnings.catch_warnings(action="ignore"):
            for trial, score in zip(self._running, scores, strict=True):
                if score is None:
                    self._study.tell(trial, state=self._failed)
                else:
                    self._study.tell(trial, score)

    def recommend(self) -> Point:
        try:
            best = self._study.best_params
        except ValueError:  # no trial is complete
            return self._start.default
        return tuple(best[name] for name in self._names)


def optuna(sampler: str) -> Callable[[Start], Contender]:
    """By the sampler's name: "cmaes", "tpe" or "gp"."""

    def make(start: Start) -> Contender:
        return Optuna(start, _sampler(sampler, start), enqueue=sampler != "cmaes")

    return make


def _sampler(name: str, start: Start) -> Any:
    from optuna import samplers

    with warnings.catch_warnings(action="ignore"):  # some of it is experimental or deprecated
        if name == "tpe":
            return samplers.TPESampler(seed=start.seed, constant_liar=True)
        if name == "gp":
            return samplers.GPSampler(seed=start.seed)
        x0 = {f"x{knob}": unit for knob, unit in enumerate(start.default)}
        return samplers.CmaEsSampler(x0=x0, sigma0=SIGMA0, seed=start.seed)


REFERENCE = "pycma"
"""The plain search that the others are measured against: pycma's mean."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contender is made, and what it needs."""

    make: Callable[[Start], Contender]
    needs: str = "cma"  # the module
    goes_on: bool = False  # beyond its budget, so that its price for a result can be told
    sources: tuple[str, ...] = ()  # modules and packages of ours that it consists of

    @property
    def version(self) -> str:
        """What its results rest on: another is another contender."""
        parts = [f"{self.needs} {version(self.needs)}", f"races {VERSION}"]
        if self.sources:
            digest = sha256(b"".join(path.read_bytes() for path in _files(self.sources)))
            parts.append(f"ours {digest.hexdigest()[:8]}")
        return ", ".join(parts)

    @property
    def is_here(self) -> bool:
        return find_spec(self.needs) is not None


def _files(modules: tuple[str, ...]) -> Iterator[Path]:
    """Their source files: of a package, those directly in it."""
    for module in modules:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        path = Path(spec.origin)
        yield from sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]


SEARCH = ("orchestrator.search", "budgets.verdict")

ENTRIES: dict[str, Entry] = {
    "ours": Entry(ours("guided"), sources=SEARCH),
    "ours plain": Entry(ours("plain"), sources=SEARCH),
    "pycma": Entry(pycma(), goes_on=True),
    "pycma best": Entry(pycma(best=True), goes_on=True),
    "pycma 0.1": Entry(pycma(sigma0=0.1), goes_on=True),
    "cmaes": Entry(cmaes(lr_adapt=False), "cmaes"),
    "cmaes lr_adapt": Entry(cmaes(lr_adapt=True), "cmaes"),
    "optuna cmaes": Entry(optuna("cmaes"), "optuna"),
    "optuna tpe": Entry(optuna("tpe"), "optuna"),
    "optuna gp": Entry(optuna("gp"), "optuna"),
    "random": Entry(anywhere, "numpy"),
    "nearby": Entry(nearby, "numpy"),
    "default": Entry(Untouched, "numpy"),
}
