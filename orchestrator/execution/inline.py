"""The executor without isolation: it evaluates in this very process."""

import os
import time
from collections import deque
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Self

from budgets.events import Status
from budgets.plan import Devices
from orchestrator.execution import Insisted, api, processes, trainer
from orchestrator.execution.api import Attempt, Outcome, Report


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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.clear()  # never started, as their files show

    def free(self) -> int:
        return self.slots.count - len(self._queue)

    def submit(self, attempt: Attempt) -> None:
        self._queue.append(attempt)

    def wait(self, timeout_seconds: float) -> list[Outcome]:  # noqa: ARG002 - the Protocol's
        return [self._evaluate(self._queue.popleft())] if self._queue else []

    def _evaluate(self, attempt: Attempt) -> Outcome:
        began, cpu_began, device = time.monotonic(), time.process_time(), self.slots.kind
        api.write_started(attempt, device)
        report = self._report(attempt)
        outcome = api.outcome_of(
            attempt,
            report.status if report else Status.CANCELLED,
            report.cause if report else "interrupted",
            began,
            report,
            cpu_seconds=time.process_time() - cpu_began,
            peak_memory_bytes=processes.resident_bytes([os.getpid()]),
            device=device,
        )
        return api.write_summary(attempt.directory, outcome)

    def _report(self, attempt: Attempt) -> Report | None:
        """Return the evaluation's own report; None if a person has ended it."""
        own, errors, report = os.getpid(), "backslashreplace", None
        out, err = (os.fdopen(log, "w", errors=errors) for log in api.open_logs(attempt.directory))
        with (
            suppress(Insisted, OSError),  # a full disk costs the log, not the evaluation
            out,
            err,
            redirect_stdout(out),
            redirect_stderr(err),
            api.insisted_on(self._signals),
        ):
            report = trainer.evaluate(attempt, self.slots.kind, self.slots.threads)
        if os.getpid() != own:  # a copy that the objective forked would write to the ledger
            os._exit(0)
        return report
