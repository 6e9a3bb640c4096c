"""What really happened on the machines, whatever anybody was told: the judge's own record."""

from collections.abc import Callable
from dataclasses import dataclass, field

from budgets.events import Status
from orchestrator.execution.evaluate import Attempt, Outcome

Evaluation = tuple[int, int, int]
"""Generation, candidate, seed."""


def place_of(attempt: Attempt) -> tuple[Evaluation, int]:
    """Which evaluation the attempt is for, and the attempt's number, by its directory."""
    seed, _, number = attempt.directory.name.partition(".")
    candidate, generation = attempt.directory.parent, attempt.directory.parent.parent
    numbers = (part.name.split("_")[1] for part in (generation, candidate))
    first, second = map(int, numbers)
    return (first, second, int(seed.split("_")[1])), int(number or 1)


@dataclass
class Use:
    """A device in use by an attempt."""

    evaluation: Evaluation
    attempt: int
    device: str
    began: float
    ended: float | None = None
    seen_at: float = 0.0  # when its summary was there for others to read
    status: Status | None = None  # of its summary; None when it died without one


@dataclass
class Journal:
    """Every use of a device, in the order of their beginnings."""

    uses: list[Use] = field(default_factory=list)
    watch: Callable[[Use], None] = lambda _: None  # told of each one as it begins

    def start(self, attempt: Attempt, device: str, at: float) -> None:
        evaluation, number = place_of(attempt)
        self.uses.append(Use(evaluation, number, device, at))
        self.watch(self.uses[-1])

    def end(self, attempt: Attempt, at: float, seen_at: float, summary: Outcome | None) -> None:
        """It is over, with that summary; does nothing for one that never began."""
        for use in self.of(*place_of(attempt))[-1:]:
            use.ended, use.seen_at = at, seen_at
            use.status = None if summary is None else summary.status

    def of(self, evaluation: Evaluation, attempt: int) -> list[Use]:
        """The uses of devices by one attempt: one, if all is well, or none."""
        return [u for u in self.uses if (u.evaluation, u.attempt) == (evaluation, attempt)]
