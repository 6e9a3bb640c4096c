"""`Search`: ask for an evaluation, make it in your own loop, tell its score.

The run is the one that `minimize` makes: the same loop carries it out in a thread, with an executor
that hands each evaluation to the caller. What was told is in the ledger, so that a killed program
goes on where it was.
"""

import time
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Condition, Thread
from typing import Self, Unpack

from budgets.events import Status
from budgets.formatting import one_line
from budgets.plan import Devices
from objectives.api import Measurement
from orchestrator.api import Options, Progress, Space, requested, session_of
from orchestrator.execution import api
from orchestrator.execution.api import Attempt, Outcome, Report
from orchestrator.execution.devices import make_devices
from orchestrator.look.notebook import Result, load
from orchestrator.matrix.carry_out import carry_out_search
from orchestrator.plan.resolve import run_name
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

    The loop's thread submits and waits; the caller takes and ends. All of it is under one lock.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, slots: Devices) -> None:
        self.slots = slots
        self._changed = Condition()
        self._open: dict[str, Trial] = {}  # by attempt: submitted, and not told
        self._ready: deque[Trial] = deque()  # those of them that were not taken
        self._ended: list[Outcome] = []  # told, and not returned by `wait`
        self._waits_for_caller = self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End what was not told: it is made again when the search goes on. Nothing more comes."""
        with self._changed:
            for trial in list(self._open.values()):
                self.end(trial, Status.CANCELLED, cause="the search was closed")
            self._is_over = True
            self._changed.notify_all()

    def free(self) -> int:
        with self._changed:  # `end` moves a trial from one to the other
            return self.slots.count - len(self._open) - len(self._ended)

    def submit(self, attempt: Attempt) -> None:
        api.write_started(attempt, DEVICE)
        trial = Trial(dict(attempt.knobs), attempt.seed, attempt, time.monotonic())
        with self._changed:
            self._open[attempt.attempt_id] = trial
            self._ready.append(trial)
            self._changed.notify_all()

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        with self._changed:
            if self._open and not self._ended:
                self._waits_for_caller = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._ended, timeout_seconds)
                self._waits_for_caller = False
            ended, self._ended = self._ended, []
            return ended

    def take(self, *, wait: bool) -> Trial | None:
        """Return the next trial; None at the end, or without `wait` if it waits for open ones."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ready or self._is_over or (self._waits_for_caller and not wait)
            )
            return self._ready.popleft() if self._ready and not self._is_over else None

    def end(
        self, trial: Trial, status: Status, score: float | None = None, cause: str = ""
    ) -> None:
        """Put the end of a trial on disk, then let the loop have it.

        Raises ValueError where it is over already.
        """
        attempt, name, report = trial.attempt, trial.attempt.attempt_id, None
        if score is not None:
            report = Report(
                attempt_id=name, status=status, measurement=Measurement(score=float(score))
            )
        outcome = api.outcome_of(attempt, status, cause, trial.began, report, device=DEVICE)
        with self._changed:
            if self._open.pop(name, None) is None:
                raise ValueError("this trial is over: its score was told, or its search was closed")
            self._ended.append(api.write_summary(attempt.directory, outcome))
            self._waits_for_caller = False
            self._changed.notify_all()


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
        self._overrides = tuple(options.get("override", {}).items())
        self._config, self._notes = requested(space, options)
        slots = make_devices(self._config.backend.workers or 1, "cpu", DEVICE)
        self._executor, self._stop = CallersExecutor(slots), Stop()
        self._display = Progress(is_silent=not options.get("progress", False))
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._carry_out, daemon=True)
        self._thread.start()

    def _carry_out(self) -> None:
        try:
            display, config = self._display, self._config
            with session_of(config, display.observe, display.say, self._stop) as session:
                session.executor = self._executor
                carry_out_search(session, config, self._executor.slots, self._overrides)
        except BaseException as error:  # raised where a caller asks
            self._failure = error
        finally:
            self._executor.__exit__()

    def ask(self, *, wait: bool = False) -> Trial | None:
        """Return the next evaluation to make, once it is known.

        None when the search is over, or when the next one waits for those that are open. With
        `wait`, for a program with several threads, None only when the search is over.
        """
        trial = self._executor.take(wait=wait)
        self._raise_failure()
        return trial

    def tell(self, trial: Trial, score: float | None = None, *, error: str = "") -> None:
        """Say what an evaluation came to: its score, or why there is none."""
        cause = "" if score is not None else one_line(error) or "it gave no score"
        self._executor.end(trial, Status.ERROR if cause else Status.OK, score, cause)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is asked: the verdict is reached, or a rule holds the run up."""
        self._raise_failure()
        return not self._thread.is_alive()

    def result(self) -> Result:
        """Return the run as it stands. Raises ValueError before its first evaluation."""
        root, phase = Path(self._config.runs_dir), self._config.search.phase
        found = load(root / phase / run_name(self._config))
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
