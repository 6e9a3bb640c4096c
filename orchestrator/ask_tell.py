"""`Search`: ask for an evaluation, make it in your own loop, tell its score.

The run is the one that `minimize` makes: the same loop carries it out in a thread, with an executor
that hands each evaluation to the caller. What was told is in the ledger, so that a killed program
goes on where it was.
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from typing import Self, Unpack

from budgets.events import Status
from budgets.formatting import one_line
from budgets.plan import Devices
from objectives.api import Measurement
from orchestrator.api import Options, Progress, Space, conducting, requested
from orchestrator.execution.api import (
    Attempt,
    Outcome,
    Report,
    locked,
    outcome_of,
    read_summary,
    write_config,
    write_started,
    write_summary,
)
from orchestrator.execution.devices import make_devices
from orchestrator.look.notebook import Result, load
from orchestrator.matrix.carry_out import carry_out_search
from orchestrator.plan.resolve import run_directory, run_name
from orchestrator.run.loop import Stop

DEVICE = "caller"
"""On which evaluations are made, as outcomes and calibrations name it."""


@dataclass(frozen=True)
class Trial:
    """An evaluation to be made: a score of these knobs with this seed."""

    knobs: dict[str, int | float]
    seed: int
    attempt: Attempt = field(repr=False)
    began: float = field(repr=False)  # by the monotonic clock


class CallersExecutor:
    """Hands attempts to a caller, who tells how they ended. At most `slots.count` at once.

    The loop's thread submits and waits; the caller takes from `ready`, and ends.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, slots: Devices) -> None:
        self.slots = slots
        self.ready: Queue[Trial | None] = Queue()  # None at the end of the search
        self._open: dict[str, Trial] = {}  # submitted, and not told
        self._ended: Queue[Outcome] = Queue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End what was not told: it is made again when the search goes on."""
        for trial in list(self._open.values()):
            with suppress(ValueError):  # it is told just now
                self.end(trial, Status.CANCELLED, cause="the search was closed")

    def free(self) -> int:
        return max(0, self.slots.count - len(self._open) - self._ended.qsize())

    def submit(self, attempt: Attempt) -> None:
        write_config(attempt)
        write_started(attempt, DEVICE)
        trial = Trial(dict(attempt.knobs), attempt.seed, attempt, time.monotonic())
        self._open[attempt.attempt_id] = trial
        self.ready.put(trial)

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        if not self._open and self._ended.empty():
            return []
        try:
            return [self._ended.get(timeout=timeout_seconds)]
        except Empty:
            return []

    def take(self, timeout_seconds: float) -> Trial | None:
        """Return the next trial; None at the end, or if none comes in time while others are open.

        While no trial is open it waits as long as it takes.
        """
        while True:
            try:
                trial = self.ready.get(timeout=max(0.01, timeout_seconds))
            except Empty:
                if self._open:
                    return None
            else:
                if trial is None:
                    self.ready.put(None)  # for the next call
                return trial

    def end(
        self, trial: Trial, status: Status, score: float | None = None, cause: str = ""
    ) -> None:
        """Put the end of a trial on disk, then let the loop have it.

        Raises ValueError where it is over already.
        """
        attempt, name = trial.attempt, trial.attempt.attempt_id
        report = None
        if score is not None:
            own = Measurement(score=score, train_seconds=time.monotonic() - trial.began)
            report = Report(attempt_id=name, status=status, measurement=own)
        outcome = outcome_of(attempt, status, cause, trial.began, report, device=DEVICE)
        with locked(attempt.directory) as is_mine:
            if not is_mine or name not in self._open or read_summary(attempt) is not None:
                raise ValueError("this trial is over: its score was told, or its search was closed")
            write_summary(attempt.directory, outcome)
        self._ended.put(outcome)
        del self._open[name]


class Search:
    """A search whose evaluations its caller makes. A context manager; leaving it closes it.

    `space` and `options` are those of `minimize`. The `name` says what is tuned, too; `workers` is
    how many trials may be open at once. The first trials measure the baseline, the last ones
    compare what was found with it on fresh seeds. Nothing ends a trial that takes longer than its
    reservation (six times the baseline's time, or `evaluation.limit_seconds`).
    """

    def __init__(self, space: Space, **options: Unpack[Options]) -> None:
        if "name" not in options:
            raise ValueError("Search: expected name=..., which says what is tuned")
        if (workers := options.pop("workers", 1)) < 1:
            raise ValueError(f"Search: workers: expected at least 1, got {workers}")
        slots = make_devices(workers, "cpu", DEVICE)
        self._overrides = tuple(options.get("override", {}).items())
        self._config, self._notes = requested(space, options)
        self._executor, self._stop = CallersExecutor(slots), Stop()
        self._failure: BaseException | None = None
        display = Progress(is_silent=not options.get("progress", False))
        self._thread = threading.Thread(target=self._carry_out, args=(display,), daemon=True)
        self._thread.start()

    def ask(self, timeout_seconds: float = 1.0) -> Trial | None:
        """Return the next evaluation to make.

        None when the search is over, or when none comes in that time while others are open.
        While no trial is open it waits for the next one.
        """
        trial = self._executor.take(timeout_seconds)
        self._raise_failure()
        return trial

    def tell(self, trial: Trial, score: float | None = None, *, error: str = "") -> None:
        """Say what an evaluation came to: its score, or why there is none."""
        if score is None:
            self._executor.end(trial, Status.ERROR, cause=one_line(error) or "it gave no score")
        else:
            self._executor.end(trial, Status.OK, float(score))

    @property
    def is_over(self) -> bool:
        """Whether nothing more is asked: the verdict is reached, or a rule holds the run up."""
        if self._thread.is_alive():
            return False
        self._raise_failure()
        return True

    def result(self) -> Result:
        """Return the run as it stands. Raises ValueError before its first evaluation."""
        self._raise_failure()
        root, phase = Path(self._config.runs_dir), self._config.search.phase
        found = load(run_directory(root, phase, run_name(self._config)))
        return replace(found, notes=self._notes)

    def close(self) -> None:
        """Leave the run; another `Search` of that name goes on with it."""
        self._stop.requested, self._stop.kill_at = True, 0.0
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_failure(self) -> None:
        """Raise what ended the thread, if an error did."""
        if self._failure is not None:
            raise self._failure

    def _carry_out(self, display: Progress) -> None:
        try:
            with conducting(self._config, display, self._stop) as session:
                session.executor = self._executor
                carry_out_search(session, self._config, self._executor.slots, self._overrides)
        except BaseException as error:  # raised where a caller asks
            self._failure = error
        finally:
            self._executor.ready.put(None)  # releases who waits for another trial
