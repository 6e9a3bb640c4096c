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


def failing(*candidates: int, generations: int = 1, workers: int = 1) -> Engine:
    """Fails these candidates of the first generations. Which points they are does not matter, so
    that the last bits of points, which depend on the processor, do not either.
    """
    places = {f"gen_{g:04d}/cand_{c:04d}" for g in range(generations) for c in candidates}

    def end(attempt: Attempt) -> tuple[Status, str] | None:
        candidate = attempt.directory.parent
        fails = f"{candidate.parent.name}/{candidate.name}" in places
        return (Status.ERROR, "ValueError: no") if fails else None

    return ending(end, on_disk=True, workers=workers)
