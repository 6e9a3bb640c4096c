"""What really happened on the machines, whatever anybody was told: the judge's own record."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from budgets.events import Status
from budgets.terms import PanelName
from orchestrator.execution.evaluate import Attempt, Outcome

Evaluation = tuple[PanelName | None, int, int, int]
"""Panel or None, its or the generation's number, candidate, seed."""


def place_of(attempt: Attempt) -> tuple[Evaluation, int]:
    """Which evaluation the attempt is for, and the attempt's number, by its directory."""
    seed, _, number = attempt.directory.name.partition(".")
    candidate, batch = attempt.directory.parent, attempt.directory.parent.parent
    panel: PanelName | None = None if batch.name.startswith("gen_") else _panel(batch.name)
    first, second, third = (int(name.split("_")[1]) for name in (batch.name, candidate.name, seed))
    return (panel, first, second, third), int(number or 1)


def _panel(name: str) -> PanelName:
    return next(panel for panel in get_args(PanelName) if name.startswith(f"{panel}_"))


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
