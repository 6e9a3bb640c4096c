"""Who races: the product's search, and its peers in the loop that their users would write."""

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from math import ceil
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


def sobol(start: Start) -> Sampled:
    """A scrambled Sobol sequence."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(start.dimension, rng=keyed("sobol", start.seed))
    left = iter(sequence.random(2 ** int(np.ceil(np.log2(4 * start.budget.evaluations)))))
    return Sampled(start, lambda count: np.array([next(left) for _ in range(count)]))


SIGMA0 = 0.2
"""Its documentation: about a quarter of the range, or less, where the optimum is expected."""


def strategy(start: Start, sigma0: float, population: int | None) -> Any:
    """A `CMAEvolutionStrategy` in the unit box; without a population, of its own default size."""
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
    }
    if population is not None:
        options["popsize"] = population
    return cma.CMAEvolutionStrategy(list(start.default), sigma0, options)


class Pycma:
    """Batch by generation; NaN for a failure, which it takes as the median."""

    def __init__(self, start: Start, sigma0: float, population: int | None, best: bool) -> None:
        self._es = strategy(start, sigma0, population)
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


def pycma(
    *, sigma0: float = SIGMA0, best: bool = False, own_size: bool = False
) -> Callable[[Start], Contender]:
    """Recommends the mean, or the best seen; the tier's population, or its own default size."""

    def make(start: Start) -> Contender:
        population = None if own_size else start.budget.population
        return Pycma(start, sigma0, population, best)

    return make


Asking = Generator[list[Any], list[float], Any]
"""Gives points, is sent their scores."""


class _Pool:
    """A generation's points, some of them evaluated, all of them in the model's eyes."""

    def __init__(self, points: list[Any], surrogate: Any) -> None:
        self._points, self._surrogate = points, surrogate
        self._scores: dict[int, float] = {}

    def evaluate(self, count: int, in_blocks: bool) -> Asking:
        """Until `count` are, those first that the model thinks best."""
        model = self._surrogate.model
        order = list(range(len(self._points)))
        if model.size > 1:
            order = np.argsort([model.eval(x) for x in self._points]).tolist()
        places = [p for p in order if p not in self._scores][: count - len(self._scores)]
        blocks = [places] if in_blocks else [[place] for place in places]
        for block in blocks:
            scores = yield [self._points[place] for place in block]
            for place, score in zip(block, scores, strict=True):
                self._scores[place] = score
                model.add_data_row(self._points[place], score)

    @property
    def evaluated(self) -> int:
        return len(self._scores)

    @property
    def is_complete(self) -> bool:
        return len(self._scores) == len(self._points)

    def values(self) -> list[float]:
        """True ones if all are known; otherwise the model's, its best raised to the best true."""
        if self.is_complete:
            return [self._scores[place] for place in range(len(self._points))]
        modelled = np.array([self._surrogate.model.eval(x) for x in self._points])
        return list(modelled - np.nanmin(modelled) + np.nanmin(list(self._scores.values())))


def generation(points: list[Any], surrogate: Any, in_blocks: bool) -> Asking:
    """The values of one generation, with as few evaluations as the model's ranking allows."""
    model, settings = surrogate.model, surrogate.settings
    room = settings.model_max_size_factor * len(points)
    model.settings.max_absolute_size = max(room, model.settings.max_absolute_size)
    pool = _Pool(points, surrogate)
    enough = 3 / model.settings.truncation_ratio - model.size
    count = int(1 + max(len(points) * settings.min_evals_percent / 100, enough))
    tau = 0.0
    while not pool.is_complete:
        yield from pool.evaluate(count, in_blocks)
        model.sort(count)
        tau = model.kendall(settings.n_for_tau(len(points), pool.evaluated))
        share = pool.evaluated / len(points)
        if tau >= settings.tau_truth_threshold - settings.tau_truth_threshold_correction * share:
            break
        count += ceil(count / 2)
    model.sort(settings.model_sort_globally or pool.evaluated)
    model.adapt_max_relative_size(tau)
    return pool.values()


class Surrogate:
    """The search, turned inside out so that it can be asked."""

    def __init__(self, start: Start, in_blocks: bool) -> None:
        from cma.fitness_models import SurrogatePopulation

        self._es = strategy(start, SIGMA0, None)
        self._best = BestSeen(start.default)
        self._worst = 0.0
        self._asking = self._search(SurrogatePopulation(None), in_blocks)
        self._asked = next(self._asking)

    def _search(self, surrogate: Any, in_blocks: bool) -> Generator[list[Any], list[float], None]:
        while not self._es.stop():
            points = self._es.ask()
            values = yield from generation(points, surrogate, in_blocks)
            self._es.tell(points, values)
            self._es.inject([surrogate.model.xopt])

    def ask(self) -> Sequence[Trial]:
        return [Trial(tuple(float(u) for u in x)) for x in self._asked]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        """A failure counts as the worst score so far: a regression takes neither NaN nor 1e9."""
        self._best.see(trials, scores)
        self._worst = max([self._worst, *(score for score in scores if score is not None)])
        told = [self._worst if score is None else score for score in scores]
        try:
            self._asked = self._asking.send(told)
        except StopIteration:
            self._asked = []

    def recommend(self) -> Point:
        return self._best.point


def surrogate(*, in_blocks: bool) -> Callable[[Start], Contender]:
    """With evaluations one at a time as the library's loop has it, or in blocks."""
    return lambda start: Surrogate(start, in_blocks)


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


class Nevergrad:
    """W candidates a round; a failure is infinitely bad. Takes what it recommends.

    Version 1.0.12 raises a TypeError on NumPy 2.4 when it fits its model: 2.2 will do.
    """

    def __init__(self, start: Start) -> None:
        with warnings.catch_warnings(action="ignore"):
            import nevergrad

            space = nevergrad.p.Array(init=np.array(start.default)).set_bounds(0.0, 1.0)
            space.random_state.seed(start.seed)
            self._optimizer: Any = nevergrad.optimizers.NGOpt(
                parametrization=space,
                budget=start.budget.evaluations,
                num_workers=start.budget.workers,
            )
        self._start, self._told = start, False
        self._running: list[Any] = []

    def ask(self) -> Sequence[Trial]:
        with warnings.catch_warnings(action="ignore"):
            self._running = [self._optimizer.ask() for _ in range(self._start.budget.workers)]
        return [Trial(tuple(candidate.value.tolist())) for candidate in self._running]

    def tell(self, _: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        with warnings.catch_warnings(action="ignore"):
            for candidate, score in zip(self._running, scores, strict=True):
                self._optimizer.tell(candidate, np.inf if score is None else score)
        self._told = True

    def recommend(self) -> Point:
        if not self._told:
            return self._start.default
        with warnings.catch_warnings(action="ignore"):
            return tuple(self._optimizer.recommend().value.tolist())


REFERENCE = "pycma"
"""The plain search that the others are measured against: pycma's mean."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a contender is made, and what it needs."""

    make: Callable[[Start], Contender]
    needs: str = "cma"  # the module
    goes_on: bool = False  # beyond its budget, so that its price for a result can be told
    alone: bool = False  # on one worker, where the same evaluations take W times as long

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
    "ours mirrored": Entry(ours("mirrored-orthogonal"), sources=SEARCH),
    "ours plain": Entry(ours("plain"), sources=SEARCH),
    "pycma": Entry(pycma(), goes_on=True),
    "pycma best": Entry(pycma(best=True), goes_on=True),
    "pycma 0.1": Entry(pycma(sigma0=0.1), goes_on=True),
    "pycma own size": Entry(pycma(own_size=True), goes_on=True),
    "pycma lq": Entry(surrogate(in_blocks=True)),
    "pycma lq serial": Entry(surrogate(in_blocks=False)),
    "pycma lq alone": Entry(surrogate(in_blocks=False), alone=True),
    "cmaes": Entry(cmaes(lr_adapt=False), "cmaes"),
    "cmaes lr_adapt": Entry(cmaes(lr_adapt=True), "cmaes"),
    "optuna cmaes": Entry(optuna("cmaes"), "optuna"),
    "optuna tpe": Entry(optuna("tpe"), "optuna"),
    "optuna gp": Entry(optuna("gp"), "optuna"),
    "nevergrad": Entry(Nevergrad, "nevergrad"),
    "random": Entry(anywhere, "numpy"),
    "nearby": Entry(nearby, "numpy"),
    "sobol": Entry(sobol, "scipy"),
    "default": Entry(Untouched, "numpy"),
}
