"""Executors in this process that end attempts otherwise than they ended, or hear of it too late."""

from collections.abc import Callable

from budgets.events import Status
from orchestrator.execution.attempts import write_summary
from orchestrator.execution.engine import Engine
from orchestrator.execution.evaluate import Attempt, Outcome, Slots
from orchestrator.execution.inline import InlineExecutor
from tests.simulation.session import SimulatedEngine

End = Callable[[Attempt], tuple[Status, str] | None]
Which = Callable[[Attempt], bool]


class Ending(InlineExecutor):
    """Ends an attempt with the status and cause of `end`, or well; on disk, too, if told so."""

    def __init__(self, slots: Slots, end: End, *, on_disk: bool) -> None:
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


class GivingUp(InlineExecutor):
    """Gives such attempts up, and hears of each two outcomes later, twice."""

    def __init__(self, slots: Slots, which: Which) -> None:
        super().__init__(slots)
        self._which = which
        self._coming: list[Outcome] = []

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        heard = super().wait(timeout_seconds)
        if len(self._coming) > 2 or (self._coming and not heard):
            heard += 2 * [self._coming.pop(0)]
        return heard

    def _evaluate(self, attempt: Attempt) -> Outcome:
        outcome = super()._evaluate(attempt)
        if not self._which(attempt):
            return outcome
        self._coming.append(outcome.model_copy(update={"seconds": outcome.seconds + 100.0}))
        return Outcome(
            attempt_id=attempt.attempt_id, status=Status.LOST, cause="no sign of life", seconds=7.0
        )


def giving_up(which: Which, workers: int) -> Engine:
    return SimulatedEngine("inline", workers=workers, make=lambda slots: GivingUp(slots, which))


def is_first(attempt: Attempt) -> bool:
    """True for no later try at the same place."""
    return "." not in attempt.directory.name
