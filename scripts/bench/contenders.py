"""The contenders: our search, and its peers in the loop that their users would write."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from budgets.plan import Configuration, SearchMethod, SearchPlan
from budgets.state import Batch, RunState
from budgets.verdict import stood_for
from orchestrator.plan.resolve import SIGMA0 as FIRST_STEPS
from orchestrator.search import Search
from scripts.bench.problems import VERSION, Point, keyed
from scripts.bench.race import BestSeen, Contender, Start, Trial


@dataclass(slots=True, kw_only=True)
class _Scored(Batch):
    """A generation whose scores are given: it has no attempts."""

    found: tuple[float | None, ...]

    def scores(self) -> list[float | None]:
        return list(self.found)


@dataclass(slots=True)
class _History:
    """The part of a run's state that its recommendation is computed from."""

    completed: list[Batch] = field(default_factory=list)


class Ours:
    """Our search: P candidates a generation, on one seed; recommends what a run would."""

    def __init__(self, start: Start, method: SearchMethod, sigma0: float) -> None:
        settings = SearchPlan(method=method, seed=start.seed, sigma0=sigma0, start=start.default)
        self._search = Search(settings, start.budget.population)
        self._default, self._history = start.default, _History()
        self._is_paused = False

    def ask(self) -> Sequence[Trial]:
        if self._is_paused:
            return ()
        batch = self._search.generation
        return [Trial(point, batch=batch) for point in self._search.ask()]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        if all(score is None for score in scores):
            self._is_paused = True  # as a run is when a whole generation fails
            return
        asked = tuple(Configuration(name="", point=trial.point) for trial in trials)
        number, found = self._search.generation, tuple(scores)
        generation = _Scored(None, number, asked, ((1,),) * len(asked), found=found)
        told = self._search.tell(generation)
        self._history.completed.append(replace(generation, told=told))

    def recommend(self) -> Point:
        return stood_for(cast("RunState", self._history)) or self._default


def ours(method: SearchMethod) -> Callable[[Start], Contender]:
    return lambda start: Ours(start, method, FIRST_STEPS[method])


class Default:
    """Recommends the default and evaluates nothing."""

    def __init__(self, start: Start) -> None:
        self._default = start.default

    def ask(self) -> Sequence[Trial]:
        return ()

    def tell(self, *_: object) -> None:
        pass

    def recommend(self) -> Point:
        return self._default


class Random:
    """The default first, then points drawn uniformly from the box; recommends the best seen."""

    def __init__(self, start: Start) -> None:
        self._workers, self._dimension = start.budget.workers, start.dimension
        self._rng = keyed("anywhere", start.seed)
        self._first = [Trial(start.default)]
        self._best = BestSeen(start.default)

    def ask(self) -> Sequence[Trial]:
        drawn = self._rng.uniform(size=(self._workers - len(self._first), self._dimension))
        trials = self._first + [Trial(tuple(row)) for row in drawn.tolist()]
        self._first = []
        return trials

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        self._best.see(trials, scores)

    def recommend(self) -> Point:
        return self._best.point


SIGMA0 = 0.2
"""First step of the peers. pycma's documentation advises a quarter of the range or less."""


def strategy(start: Start, sigma0: float) -> Any:
    """Return a `CMAEvolutionStrategy` in the unit box, with the tier's population."""
    with warnings.catch_warnings(action="ignore"):  # about missing matplotlib
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
    """pycma by generation. A failure is NaN, which pycma replaces by the median."""

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
        if any(score is not None for score in scores):  # from failures alone it learns nothing
            self._es.tell(self._asked, [np.nan if score is None else score for score in scores])

    def recommend(self) -> Point:
        if self._best is not None:
            return self._best.point
        if self._es.countiter == 0:
            return self._default
        return tuple(float(u) for u in self._es.result.xfavorite)


def pycma(*, sigma0: float = SIGMA0, best: bool = False) -> Callable[[Start], Contender]:
    """Recommend the mean, or with `best` the best point seen."""
    return lambda start: Pycma(start, sigma0, best)


class Cmaes:
    """The package cmaes by generation. A failure scores inf; recommends the mean."""

    def __init__(self, start: Start, lr_adapt: bool) -> None:
        from cmaes import CMA

        self._default, self._is_told = start.default, False
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
        self._is_told = True

    def recommend(self) -> Point:
        if not self._is_told:
            return self._default
        return tuple(np.clip(self._cma.mean, 0, 1).tolist())


def cmaes(*, lr_adapt: bool) -> Callable[[Start], Contender]:
    """Use a fixed or adapted learning rate (M. Nomura, Y. Akimoto, I. Ono, GECCO 2023)."""
    return lambda start: Cmaes(start, lr_adapt)


class Optuna:
    """An Optuna study, W trials a round. A failure has state FAIL; recommends the best seen.

    The default is enqueued as the first trial, except for CMA-ES, which gets it as x0.
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


def optuna_cmaes(start: Start) -> Contender:
    from optuna.samplers import CmaEsSampler

    x0 = {f"x{knob}": unit for knob, unit in enumerate(start.default)}
    with warnings.catch_warnings(action="ignore"):  # some of it is experimental or deprecated
        sampler = CmaEsSampler(x0=x0, sigma0=SIGMA0, seed=start.seed)
    return Optuna(start, sampler, enqueue=False)


def optuna_tpe(start: Start) -> Contender:
    from optuna.samplers import TPESampler

    with warnings.catch_warnings(action="ignore"):
        return Optuna(start, TPESampler(seed=start.seed, constant_liar=True), enqueue=True)


REFERENCE = "pycma"
"""The contender whose spend the others are compared with: pycma, recommending its mean."""


ROOT = Path(__file__).resolve().parents[2]
SOURCES = (*sorted((ROOT / "orchestrator/search").glob("*.py")), ROOT / "budgets/verdict.py")
"""What our search consists of."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contender is made, and what it needs."""

    make: Callable[[Start], Contender]
    needs: str = "cma"  # the module
    continues: bool = False  # past its budget, so that its spend for a result can exceed 1
    sources: tuple[Path, ...] = ()

    @property
    def version(self) -> str:
        """Changes with whatever its results depend on."""
        parts = [f"{self.needs} {version(self.needs)}", f"races {VERSION}"]
        if self.sources:
            digest = sha256(b"".join(path.read_bytes() for path in self.sources))
            parts.append(f"ours {digest.hexdigest()[:8]}")
        return ", ".join(parts)

    @property
    def is_installed(self) -> bool:
        return find_spec(self.needs) is not None


ENTRIES: dict[str, Entry] = {
    "ours": Entry(ours("guided"), sources=SOURCES),
    "ours plain": Entry(ours("plain"), sources=SOURCES),
    "pycma": Entry(pycma(), continues=True),
    "pycma best": Entry(pycma(best=True), continues=True),
    "pycma 0.1": Entry(pycma(sigma0=0.1), continues=True),
    "cmaes": Entry(cmaes(lr_adapt=False), "cmaes"),
    "cmaes lr_adapt": Entry(cmaes(lr_adapt=True), "cmaes"),
    "optuna cmaes": Entry(optuna_cmaes, "optuna"),
    "optuna tpe": Entry(optuna_tpe, "optuna"),
    "random": Entry(Random, "numpy"),
    "default": Entry(Default, "numpy"),
}
