"""Executors in this process that end attempts otherwise than they ended."""

from collections.abc import Callable

from budgets.events import Status
from budgets.plan import Devices
from orchestrator.execution.api import Attempt, Outcome, write_summary
from orchestrator.execution.devices import Engine
from orchestrator.execution.inline import InlineExecutor
from tests.simulation.session import SimulatedEngine

End = Callable[[Attempt], tuple[Status, str] | None]


class Ending(InlineExecutor):
    """Ends an attempt with the status and cause of `end`, or well; on disk, too, if told so."""

    def __init__(self, slots: Devices, end: End, *, on_disk: bool) -> None:
        super().__init__(slots)
        self._end, self._on_disk = end, on_disk

    def _evaluate(self, attempt: Attempt) -> Outcome:
        outcome, end = super()._evaluate(attempt), self._end(attempt)
        if end is None:
            return outcome
        said = {"status": end[0], "cause": end[1], "measurement": None}
        outcome = outcome.model_copy(update=said)
        return write_summary(attempt.directory, outcome) if self._on_disk else outcome


def ending(end: End, *, on_disk: bool, workers: int = 1) -> Engine:
    return SimulatedEngine(
        "inline", workers=workers, make=lambda slots: Ending(slots, end, on_disk=on_disk)
    )
