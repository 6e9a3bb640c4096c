"""The executor without isolation: evaluations in this very process."""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Self

from budgets.events import Status
from orchestrator.execution import processes, trainer
from orchestrator.execution.api import Attempt, EngineError, Outcome, Slots
from orchestrator.execution.files import (
    STARTED,
    Report,
    Started,
    locked,
    write_config,
    write_model,
    write_summary,
)
from orchestrator.execution.signals import INTERRUPTS, Insisted, insisted_on

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
            cause = "it was never started"
            unstarted = Outcome(
                attempt_id=attempt.attempt_id, status=Status.CANCELLED, cause=cause, seconds=0.0
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
    """Evaluate, and end any copy of this process that the objective forked and let return."""
    here = os.getpid()
    with _restored(slots.threads):
        report = trainer.evaluate(attempt, slots.device, slots.threads)
    if os.getpid() != here:
        os._exit(0)  # a second orchestrator would write to the ledger
    return report


@contextmanager
def _restored(threads: int) -> Iterator[None]:
    """Whatever the block does to them, the working directory and the handlers of signals stay.

    Within it the environment says how many threads are the evaluation's.
    """
    directory, said = os.getcwd(), os.environ.get(THREADS)
    os.environ[THREADS] = str(threads)
    in_main = threading.current_thread() is threading.main_thread()
    handlers = {signum: signal.getsignal(signum) for signum in INTERRUPTS if in_main}
    try:
        yield
    finally:
        os.chdir(directory)
        os.environ.pop(THREADS, None)
        if said is not None:
            os.environ[THREADS] = said
        for signum, handler in handlers.items():
            signal.signal(signum, handler or signal.SIG_DFL)
