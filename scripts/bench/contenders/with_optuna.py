"""Optuna's samplers behind ask and tell, with W trials running at a time."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from scripts.bench.contenders.api import Contender, Start, Trial
from scripts.bench.problem import Point

SIGMA0 = 0.2


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
