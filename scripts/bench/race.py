"""One contender on one problem with one budget."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from scripts.bench.budgets import Budget
from scripts.bench.contenders.api import Contender, Trial
from scripts.bench.draws import seed_of
from scripts.bench.problem import Problem


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
    """The loop around a contender: rounds of W slots, of which those left empty are lost."""

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
