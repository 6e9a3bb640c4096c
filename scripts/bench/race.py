"""One contender on one problem with one budget: rounds of W slots, empty ones lost."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any, NamedTuple, Protocol

from scripts.bench.problems import Point, Problem, seed_of

CHECKPOINTS = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
BEYOND = (1.5, 2.0, 3.0, 4.0)
"""Shares of a budget at which a recommendation is looked at; and how far the reference goes on."""

DEAR_CHECKPOINTS = (0.5, 1.0)
DEAR_BEYOND = (2.0,)
"""The same where a look is as dear as several evaluations."""


@dataclass(frozen=True, slots=True)
class Budget:
    """E evaluations on W workers: E / W rounds of at most W evaluations each."""

    name: str
    evaluations: int
    workers: int
    population: int  # of a search that wants one: the tier's own
    whole: str = ""  # the tier that it is a share of, whose reference it is measured against

    @property
    def rounds(self) -> int:
        return self.evaluations // self.workers

    @property
    def generations(self) -> int:
        return self.evaluations // self.population


BUDGETS = {
    budget.name: budget
    for budget in (
        Budget("min", 16, 4, 8),
        Budget("target", 120, 6, 12),
        Budget("max", 480, 8, 16),
        Budget("phase2", 720, 8, 24),
        Budget("target40", 48, 6, 12, "target"),
        Budget("target25", 30, 6, 10, "target"),
    )
}
"""The tiers, and two shares of tier target: 40 % and 25 % of what it spends."""


class Trial(NamedTuple):
    """An evaluation that is asked for. Those of one ask with equal `repeat` share their seed.

    With `batch`, those of every ask that names the same one do.
    """

    point: Point
    repeat: int = 0
    batch: int | None = None


class Start(NamedTuple):
    """What a contender knows before it begins."""

    default: Point
    budget: Budget
    seed: int

    @property
    def dimension(self) -> int:
        return len(self.default)


class Contender(Protocol):
    """Proposes points, learns from their scores, and names the one that it would use."""

    def ask(self) -> Sequence[Trial]:
        """What to evaluate next, in any number; none when it has come to its end."""

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        """The scores of all that was asked; None is a failed evaluation."""

    def recommend(self) -> Point:
        """What its user would take now."""


class BestSeen:
    """The point with the best score so far; the default before there is one."""

    def __init__(self, default: Point) -> None:
        self.point = default
        self._score = float("inf")

    def see(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        for trial, score in zip(trials, scores, strict=True):
            if score is not None and score < self._score:
                self.point, self._score = trial.point, score


@dataclass(slots=True)
class Outcome:
    """What a contender came to. A regret belongs to the recommendation at that spend."""

    regrets: dict[float, float] = field(default_factory=dict)
    evaluations: int = 0
    failed: int = 0
    idle: int = 0  # slots of the budget in which nothing ran
    seconds: float = 0.0  # of CPU, the contender's own
    error: str = ""  # why it did not finish

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"regrets": [[s, r] for s, r in self.regrets.items()]}


class Race:
    """The loop around a contender."""

    def __init__(
        self, contender: Contender, problem: Problem, budget: Budget, spends: Sequence[float]
    ) -> None:
        self._contender, self._problem, self._budget = contender, problem, budget
        self._due = sorted(spends)
        self._asked = 0
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """To the last of the spends, or to where the contender has no more questions.

        A recommendation between two spends of a batch is made before the batch is told. Where the
        contender crashes its user is left with the default.
        """
        last = round(self._budget.rounds * self._due[-1])
        try:
            self._rounds_until(last)
            self._note(last)
        except Exception as error:  # a peer's crash is a result too
            self.outcome.error = f"{type(error).__name__}: {error}"
            self.outcome.regrets |= dict.fromkeys(self._due, 1.0)
        self.outcome.idle = last * self._budget.workers - self.outcome.evaluations
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
        self.outcome.failed += sum(score is None for score in scores)
        return scores

    def _seed(self, trial: Trial) -> int:
        batch = self._asked if trial.batch is None else trial.batch
        return seed_of("evaluation", batch, trial.repeat)

    def _note(self, rounds: int) -> None:
        """The regret of what is recommended now, for each spend that is reached."""
        reached = [spend for spend in self._due if spend * self._budget.rounds <= rounds]
        if reached:
            regret = self._problem.regret(self._timed(self._contender.recommend))
            self.outcome.regrets |= dict.fromkeys(reached, regret)
            self._due = self._due[len(reached) :]

    def _timed(self, call: Any, *given: Any) -> Any:
        began = time.process_time()
        try:
            return call(*given)
        finally:
            self.outcome.seconds += time.process_time() - began
