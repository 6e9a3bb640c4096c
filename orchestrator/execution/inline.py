"""The executor without isolation: it evaluates in this very process."""

import os
import time
from collections import deque
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Self

from budgets.events import Status
from budgets.plan import Devices
from orchestrator.execution import Insisted, processes, trainer
from orchestrator.execution.api import (
    NEVER_STARTED,
    Attempt,
    Outcome,
    Report,
    insisted_on,
    locked,
    outcome_of,
    write_config,
    write_started,
    write_summary,
)

THREADS = "OMP_NUM_THREADS"


class InlineExecutor:
    """Evaluates in this process, when `wait` is called: no isolation and no limits.

    For analytic objectives and tests. It writes the same files as the others. The second SIGINT or
    SIGTERM during evaluations ends the running one.
    """

    def __init__(self, slots: Devices) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._queue: deque[Attempt] = deque()
        self._signals: list[int] = []  # received during evaluations
        self._threads = os.environ.get(THREADS)  # before

    def __enter__(self) -> Self:
        os.environ[THREADS] = str(self.slots.threads)
        return self

    def __exit__(self, *_: object) -> None:
        os.environ.pop(THREADS, None)
        if self._threads is not None:
            os.environ[THREADS] = self._threads
        for attempt in self._queue:
            name, status = attempt.attempt_id, Status.CANCELLED
            ended = Outcome(attempt_id=name, status=status, cause=NEVER_STARTED, seconds=0.0)
            self._write(attempt, ended)
        self._queue.clear()

    def free(self) -> int:
        return self.slots.count - len(self._queue)

    def submit(self, attempt: Attempt) -> None:
        write_config(attempt)
        self._queue.append(attempt)

    def wait(self, timeout_seconds: float) -> list[Outcome]:  # noqa: ARG002 - the Protocol's
        return [self._evaluate(self._queue.popleft())] if self._queue else []

    def _evaluate(self, attempt: Attempt) -> Outcome:
        began, cpu_began, device = time.monotonic(), time.process_time(), self.slots.kind
        write_started(attempt, device)
        report = self._report(attempt)
        outcome = outcome_of(
            attempt,
            report.status if report else Status.CANCELLED,
            report.cause if report else "interrupted",
            began,
            report,
            cpu_seconds=time.process_time() - cpu_began,
            peak_memory_bytes=processes.resident_bytes([os.getpid()]),
            device=device,
        )
        return self._write(attempt, outcome)

    def _report(self, attempt: Attempt) -> Report | None:
        """Return the evaluation's own report; None if a person has ended it."""
        directory, errors, own = attempt.directory, "backslashreplace", os.getpid()
        try:
            with (
                open(directory / "stdout.txt", "w", errors=errors, opener=_private) as out,
                open(directory / "stderr.txt", "w", errors=errors, opener=_private) as err,
                redirect_stdout(out),
                redirect_stderr(err),
                suppress(Insisted),
                insisted_on(self._signals),
            ):
                return trainer.evaluate(attempt, self.slots.kind, self.slots.threads)
            return None
        finally:
            if os.getpid() != own:  # a copy that the objective forked would write to the ledger
                os._exit(0)

    def _write(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        with locked(attempt.directory):
            return write_summary(attempt.directory, outcome)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
