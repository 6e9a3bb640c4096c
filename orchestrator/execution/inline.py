"""The executor without isolation: evaluations in this very process."""

import os
import time
from collections import deque
from contextlib import redirect_stderr, redirect_stdout
from typing import Self

from budgets.events import Status
from orchestrator.execution import processes, trainer
from orchestrator.execution.api import Attempt, EngineError, Outcome, Slots
from orchestrator.execution.files import (
    NEVER_STARTED,
    STARTED,
    Report,
    Started,
    locked,
    write_config,
    write_model,
    write_summary,
)
from orchestrator.execution.signals import Insisted, insisted_on

THREADS = "OMP_NUM_THREADS"
ANYTHING = "backslashreplace"
"""Logs take characters that are none, as a child's do."""


class InlineExecutor:
    """Evaluates in this process, when `wait` is called: no isolation and no limits.

    For analytic objectives and tests; it writes the same files as the others. The second SIGINT or
    SIGTERM during evaluations ends the one that runs.
    """

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.warnings: tuple[str, ...] = ()
        self._queue: deque[Attempt] = deque()
        self._heard: list[int] = []  # signals, while something was evaluated

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._queue:
            attempt = self._queue.popleft()
            unstarted = Outcome(
                attempt_id=attempt.attempt_id,
                status=Status.CANCELLED,
                cause=NEVER_STARTED,
                seconds=0.0,
            )
            with locked(attempt.directory):
                write_summary(attempt.directory, unstarted)

    def free(self, avoid: str = "") -> int:  # noqa: ARG002 - there is no other device
        return self.slots.count - len(self._queue)

    def submit(self, attempt: Attempt) -> None:
        if len(self._queue) >= self.slots.count:
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        self._queue.append(attempt)

    def wait(self, timeout_seconds: float) -> list[Outcome]:  # noqa: ARG002 - the Protocol's
        return [self._evaluate(self._queue.popleft())] if self._queue else []

    def _evaluate(self, attempt: Attempt) -> Outcome:
        began, cpu_began = time.monotonic(), time.process_time()
        me, device = processes.this_owner().model_dump(), self.slots.device
        started = Started(attempt_id=attempt.attempt_id, device=device, **me)
        write_model(attempt.directory / STARTED, started, durable=False)
        with (
            open(attempt.directory / "stdout.txt", "w", errors=ANYTHING, opener=_private) as out,
            open(attempt.directory / "stderr.txt", "w", errors=ANYTHING, opener=_private) as err,
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            report = self._report(attempt)
        outcome = Outcome(
            attempt_id=attempt.attempt_id,
            status=report.status,
            cause=report.cause,
            seconds=time.monotonic() - began,
            startup_seconds=(report.called_at or began) - began,
            cpu_seconds=time.process_time() - cpu_began,
            peak_memory_bytes=processes.resident_bytes([os.getpid()]),
            device=self.slots.device,
            measurement=report.measurement,
        )
        with locked(attempt.directory):
            return write_summary(attempt.directory, outcome)

    def _report(self, attempt: Attempt) -> Report:
        try:
            with insisted_on(self._heard):
                return _evaluated_here_alone(attempt, self.slots)
        except Insisted:
            return Report(
                attempt_id=attempt.attempt_id, status=Status.CANCELLED, cause="interrupted"
            )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _evaluated_here_alone(attempt: Attempt, slots: Slots) -> Report:
    """Evaluate, and end any copy of this process that the objective forked and let return.

    Whatever the objective does to it, the working directory stays. Meanwhile the environment says
    how many threads are the evaluation's.
    """
    here, directory, said = os.getpid(), os.getcwd(), os.environ.get(THREADS)
    os.environ[THREADS] = str(slots.threads)
    try:
        report = trainer.evaluate(attempt, slots.device, slots.threads)
    finally:
        os.chdir(directory)
        os.environ.pop(THREADS, None)
        if said is not None:
            os.environ[THREADS] = said
    if os.getpid() != here:
        os._exit(0)  # a second orchestrator would write to the ledger
    return report
