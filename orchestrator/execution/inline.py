"""The executor without isolation: it evaluates in this very process."""

import os
import time
from collections import deque
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from typing import Self

from budgets.events import Status
from orchestrator.execution import processes, trainer
from orchestrator.execution.api import (
    NEVER_STARTED,
    Attempt,
    Outcome,
    Report,
    Slots,
    locked,
    write_config,
    write_started,
    write_summary,
)
from orchestrator.execution.signals import Insisted, insisted_on

ERRORS = "backslashreplace"
"""How logs encode characters that UTF-8 does not have."""


class InlineExecutor:
    """Evaluates in this process, when `wait` is called: no isolation and no limits.

    For analytic objectives and tests. It writes the same files as the others. The second SIGINT or
    SIGTERM during evaluations ends the running one.
    """

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._queue: deque[Attempt] = deque()
        self._signals: list[int] = []  # received during evaluations
        self._threads: str | None = None  # OMP_NUM_THREADS before

    def __enter__(self) -> Self:
        self._threads = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = str(self.slots.threads)
        return self

    def __exit__(self, *_: object) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)
        if self._threads is not None:
            os.environ["OMP_NUM_THREADS"] = self._threads
        for attempt in self._queue:
            name, status = attempt.attempt_id, Status.CANCELLED
            outcome = Outcome(attempt_id=name, status=status, cause=NEVER_STARTED, seconds=0.0)
            with locked(attempt.directory):
                write_summary(attempt.directory, outcome)
        self._queue.clear()

    def free(self) -> int:
        return self.slots.count - len(self._queue)

    def submit(self, attempt: Attempt) -> None:
        write_config(attempt)
        self._queue.append(attempt)

    def wait(self, timeout_seconds: float) -> list[Outcome]:  # noqa: ARG002 - the Protocol's
        return [self._evaluate(self._queue.popleft())] if self._queue else []

    def _evaluate(self, attempt: Attempt) -> Outcome:
        began, cpu_began = time.monotonic(), time.process_time()
        write_started(attempt, self.slots.device)
        report, called_at = self._report(attempt), began
        status, cause, measurement = Status.CANCELLED, "interrupted", None
        if report is not None:
            status, cause, measurement = report.status, report.cause, report.measurement
            called_at = report.called_at or began
        outcome = Outcome(
            attempt_id=attempt.attempt_id,
            status=status,
            cause=cause,
            seconds=time.monotonic() - began,
            startup_seconds=called_at - began,
            cpu_seconds=time.process_time() - cpu_began,
            peak_memory_bytes=processes.resident_bytes([os.getpid()]),
            device=self.slots.device,
            measurement=measurement,
        )
        with locked(attempt.directory):
            return write_summary(attempt.directory, outcome)

    def _report(self, attempt: Attempt) -> Report | None:
        """Return the evaluation's own report; None if a person has ended it."""
        own = os.getpid()
        try:
            with (
                open(attempt.directory / "stdout.txt", "w", errors=ERRORS, opener=_private) as out,
                open(attempt.directory / "stderr.txt", "w", errors=ERRORS, opener=_private) as err,
                redirect_stdout(out),
                redirect_stderr(err),
                chdir(os.getcwd()),  # restores it afterwards
                suppress(Insisted),
                insisted_on(self._signals),
            ):
                return trainer.evaluate(attempt, self.slots.device, self.slots.threads)
            return None
        finally:
            if os.getpid() != own:  # a copy that the objective forked would write to the ledger
                os._exit(0)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
