"""Run one contender on one problem with one budget: rounds of W slots, empty slots are lost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple, Protocol

from scripts.bench.problems import Point, Problem, seed_of

CHECKPOINTS = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
"""Shares of the budget after which the regret of the recommendation is recorded."""

BEYOND = (1.5, 2.0, 3.0, 4.0)
"""Further checkpoints of pycma, which the other contenders' spend is compared with."""


@dataclass(frozen=True, slots=True)
class Budget:
    """E evaluations on W workers: E / W rounds of at most W evaluations each."""

    name: str
    evaluations: int
    workers: int
    population: int  # for searches that have one: the tier's

    @property
    def rounds(self) -> int:
        return self.evaluations // self.workers

    @property
    def generations(self) -> int:
        return self.evaluations // self.population


BUDGETS = {
    budget.name: budget
    for budget in (Budget("min", 16, 4, 8), Budget("target", 120, 6, 12), Budget("max", 480, 8, 16))
}


class Trial(NamedTuple):
    """A requested evaluation. Trials of one batch with equal `repeat` share their seed."""

    point: Point
    repeat: int = 0
    batch: int | None = None  # None: each call of `ask` is a batch


class Start(NamedTuple):
    """What a contender knows before it begins."""

    default: Point
    budget: Budget
    seed: int

    @property
    def dimension(self) -> int:
        return len(self.default)


class Contender(Protocol):
    """Proposes points, learns from their scores, and recommends one."""

    def ask(self) -> Sequence[Trial]:
        """Return the next evaluations, any number of them; none at the end of the search."""

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        """Learn the scores of all trials of the last `ask`; None is a failed evaluation."""

    def recommend(self) -> Point:
        """Return the point that its user would take now."""


class BestSeen:
    """The point with the best score so far; the default until there is one."""

    def __init__(self, default: Point) -> None:
        self.point = default
        self._score = float("inf")

    def see(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        for trial, score in zip(trials, scores, strict=True):
            if score is not None and score < self._score:
                self.point, self._score = trial.point, score


@dataclass(slots=True)
class Outcome:
    """The regret of a contender's recommendation at each checkpoint, and what it cost."""

    regrets: dict[float, float] = field(default_factory=dict)
    evaluations: int = 0
    seconds: float = 0.0  # CPU time of the contender itself
    error: str = ""  # why it did not finish


class Race:
    """The loop around a contender."""

    def __init__(
        self, contender: Contender, problem: Problem, budget: Budget, checkpoints: Sequence[float]
    ) -> None:
        self._contender, self._problem, self._budget = contender, problem, budget
        self._due = sorted(checkpoints)
        self._asked = 0
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Run to the last checkpoint, or until the contender asks for nothing.

        A checkpoint within a batch sees the recommendation from before the batch. If the contender
        crashes, its recommendation is the default.
        """
        last = round(self._budget.rounds * self._due[-1])
        try:
            self._rounds_until(last)
            self._note(last)
        except Exception as error:  # a peer's crash is a result too
            self.outcome.error = f"{type(error).__name__}: {error}"
            self.outcome.regrets |= dict.fromkeys(self._due, 1.0)
        return self.outcome

    def _rounds_until(self, last: int) -> None:
        done = 0
        while self._due:
            trials = self._timed(self._contender.ask)
            after = done + ceil(len(trials) / self._budget.workers)
            if not trials or after > last:
                return
            self._note(after - 1)
            self._timed(self._contender.tell, trials, self._evaluate(trials))
            self._note(after)
            done = after

    def _evaluate(self, trials: Sequence[Trial]) -> list[float | None]:
        scores = [self._problem.score(trial.point, self._seed(trial)) for trial in trials]
        self._asked += 1
        self.outcome.evaluations += len(trials)
        return scores

    def _seed(self, trial: Trial) -> int:
        batch = self._asked if trial.batch is None else trial.batch
        return seed_of("evaluation", batch, trial.repeat)

    def _note(self, rounds: int) -> None:
        """Record the regret of the current recommendation for each checkpoint reached."""
        reached = [share for share in self._due if share * self._budget.rounds <= rounds]
        if reached:
            regret = self._problem.regret(self._timed(self._contender.recommend))
            self.outcome.regrets |= dict.fromkeys(reached, regret)
            self._due = self._due[len(reached) :]

    def _timed(self, call: Any, *arguments: Any) -> Any:
        began = time.process_time()
        try:
            return call(*arguments)
        finally:
            self.outcome.seconds += time.process_time() - began
