"""The contract of an executor, and the files in which an attempt is kept.

Each attempt has its own directory. `config.json` holds the Attempt. `started.json` is written
before anything is launched. `metrics.jsonl` holds the heartbeats. `measurement.json` is the
evaluation's own report and is not trusted. `summary.json` is the Outcome: written exactly once,
when no process of the attempt is alive, it is the result even if the orchestrator died in the
meantime. `supervisor.lock` is held (flock) while a supervisor lives and is never unlinked. Only its
holder writes `summary.json`.
"""

import fcntl
import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar

from pydantic import Field

from budgets.events import MOST_SCORE, Owner, Status
from budgets.plan import Devices, Frozen, Limits
from objectives.api import Count, Measurement, ObjectiveSpec
from objectives.files import read_plain, replace
from orchestrator.execution import Insisted, processes

CONFIG, STARTED, METRICS = "config.json", "started.json", "metrics.jsonl"
MEASUREMENT, SUMMARY, LOCK = "measurement.json", "summary.json", "supervisor.lock"
LARGEST_FILE_BYTES = 1_000_000  # a longer one is not believed
KILL_SECONDS = 1.0  # for killed processes to disappear
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]  # a file has no others


class EngineError(Exception):
    """The machinery that runs evaluations failed; no candidate is to blame."""


class Attempt(Frozen):
    """Everything a supervisor needs, on disk before anyone is asked to start the attempt."""

    attempt_id: str
    directory: Path
    objective: ObjectiveSpec
    knobs: dict[str, int | float]
    seed: int
    limits: Limits
    owner: Owner
    pinned: dict[str, str | int] = Field(default={})  # the plan's provenance


class Started(Owner):
    """The supervisor of an attempt."""

    attempt_id: str
    device: str = ""  # see `device_name`


Reported = Literal[Status.OK, Status.NAN, Status.OOM, Status.ERROR]


class Report(Frozen):
    """How the evaluation ended by its own account."""

    attempt_id: str
    status: Reported
    cause: str = ""
    measurement: Measurement | None = None
    called_at: float | None = Field(default=None, allow_inf_nan=False)
    """By the monotonic clock: when the objective was called."""


class Outcome(Frozen):
    """How an attempt ended, as measured by its supervisor."""

    attempt_id: str
    status: Status
    cause: str = ""  # one line for people; empty when ok
    seconds: Seconds  # wall clock from the supervisor's start to the end of the process tree
    startup_seconds: Seconds = 0.0  # the part of it before the objective was called
    cpu_seconds: Seconds = 0.0  # of the whole tree
    peak_memory_bytes: Count = 0  # resident, of the whole tree together
    device: str = ""  # see `device_name`
    measurement: Measurement | None = None  # always when ok; when nan, if there was a score


Own = TypeVar("Own", Attempt, Started, Report, Outcome)
FILES = {Attempt: CONFIG, Started: STARTED, Report: MEASUREMENT, Outcome: SUMMARY}
"""In the attempt's directory."""


class Executor(Protocol):
    """Runs at most `slots.count` attempts at once; each submitted attempt comes back once.

    An attempt comes back when none of its processes is alive. If its node is silent, it comes back
    as lost after its lease has expired there, charged its whole reservation.
    """

    slots: Devices
    warnings: tuple[str, ...]  # devices and nodes that are no longer used; grows during the run

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """Kill what is still running, wait until its processes are gone, release the slots."""

    def free(self) -> int:
        """Return how many attempts can be submitted now.

        With nothing running it may wait a moment for a device. Raises EngineError when no device
        is left.
        """

    def submit(self, attempt: Attempt) -> None:
        """Start an attempt whose directory holds its config alone. A slot must be free."""

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        """Return new outcomes: at least one, unless the time is up or nothing is running."""


def device_name(gpu_id: str | None, host: str = "") -> str:
    """Return a device's name in outcomes: `cpu` or the GPU's id; on a cluster with its host."""
    return f"{gpu_id or 'cpu'} on {host}" if host else gpu_id or "cpu"


def lost(attempt: Attempt, cause: str, seconds: float) -> Outcome:
    """Return the outcome of an attempt that has no result; `seconds` are what it is charged."""
    name = attempt.attempt_id
    return Outcome(attempt_id=name, status=Status.LOST, cause=cause, seconds=seconds)


def write_model(directory: Path, own: Own, *, durable: bool = True) -> None:
    """Write one of an attempt's files, whole or not at all.

    NaN and infinity are kept; pydantic's own JSON would turn them into null.
    """
    data = json.dumps(own.model_dump(), default=str).encode()
    replace(directory / FILES[type(own)], data, durable=durable)


def open_logs(directory: Path) -> tuple[int, ...]:
    """Return descriptors of the empty `stdout.txt` and `stderr.txt`, to append to and to read."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
    return tuple(os.open(directory / name, flags, 0o600) for name in ("stdout.txt", "stderr.txt"))


def write_started(attempt: Attempt, device: str) -> None:
    """Write `started.json`: this process supervises the attempt from now on.

    Not synced: after a power cut the boot id differs, and then the file decides nothing.
    """
    owner = processes.this_owner().model_dump()
    started = Started(attempt_id=attempt.attempt_id, device=device, **owner)
    write_model(attempt.directory, started, durable=False)


def write_summary(directory: Path, outcome: Outcome) -> Outcome:
    """Write the result and return it; lost if the disk does not take it.

    The caller holds the lock and has seen that there is no result yet.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)  # the evaluation may have removed it
        write_model(directory, outcome)
    except OSError as error:
        found = {"status": Status.LOST, "measurement": None}
        return outcome.model_copy(update={**found, "cause": f"no {SUMMARY}: {error.strerror}"})
    return outcome


def read(model: type[Own], directory: Path) -> Own | None:
    """Return one of an attempt's files; None if it is absent, invalid, or not a plain file."""
    try:
        most = LARGEST_FILE_BYTES if model is Report else None  # the objective writes it
        return model.model_validate_json(read_plain(directory / FILES[model], most))
    except (OSError, ValueError):
        return None


def read_own(attempt: Attempt, model: type[Own]) -> Own | None:
    """Return one of the attempt's files, unless it belongs to another attempt."""
    found = read(model, attempt.directory)
    return found if found is not None and found.attempt_id == attempt.attempt_id else None


def outcome_of(
    attempt: Attempt, status: Status, cause: str, began: float, report: Report | None, **found: Any
) -> Outcome:
    """Return how an attempt that began then ends now; `found` are other fields of the outcome.

    A score that cannot be compared with others makes it `nan`.
    """
    measurement, called_at = (report.measurement, report.called_at) if report else (None, None)
    if status is Status.OK:
        score = math.nan if measurement is None else measurement.score
        if not abs(score) <= MOST_SCORE:
            status = Status.NAN
            cause = f"the score is {score:g}: expected a value within ±{MOST_SCORE:g}"
    seconds = time.monotonic() - began
    return Outcome(
        attempt_id=attempt.attempt_id,
        status=status,
        cause=cause,
        seconds=seconds,
        startup_seconds=min(max((called_at or began) - began, 0.0), seconds),
        measurement=measurement,
        **found,
    )


@contextmanager
def locked(directory: Path, wait_seconds: float = 0.0) -> Iterator[bool]:
    """Hold the attempt's lock for the block; the value is False if another process has it.

    Creates the directory again if the evaluation has removed it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    deadline, has_it = time.monotonic() + wait_seconds, False
    try:
        while not has_it:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                has_it = True
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    break
                time.sleep(0.02)
        yield has_it
    finally:
        os.close(descriptor)


def kill_supervisor(directory: Path) -> None:
    """Kill the attempt's supervisor if it runs on this machine, also a stopped one."""
    started = read(Started, directory)
    if started and processes.is_alive_here(started):
        processes.send([started.pid], signal.SIGKILL)


def end_if_abandoned(attempt: Attempt, seconds: float) -> Outcome | None:
    """Return the outcome of an attempt without a supervisor; None while it has one.

    If there is none yet, its processes are killed, then it gets the summary `lost` with that
    duration. A supervisor that starts late finds the summary and launches nothing.
    """
    with locked(attempt.directory, KILL_SECONDS) as is_unsupervised:
        if not is_unsupervised:
            return None
        if outcome := read_own(attempt, Outcome):
            return outcome
        if not processes.kill_marked(attempt.attempt_id, KILL_SECONDS):
            return None
        return write_summary(attempt.directory, lost(attempt, "its supervisor is gone", seconds))


def recover(attempt: Attempt, wait_seconds: float) -> Outcome:
    """Return how an attempt of a dead orchestrator ended, once none of its processes lives here.

    It is lost at no charge if nothing was and nothing will be launched, and charged its whole
    reservation if it may have run. Waits up to `wait_seconds` for its supervisor, which ends by
    itself when its owner is dead, then kills what is left. The caller holds the ledger's lock, so
    the owner cannot submit anything more.
    """
    directory, is_there = attempt.directory, attempt.directory.is_dir()
    with locked(directory, wait_seconds) as has_ended:
        if not has_ended:
            kill_supervisor(directory)
        processes.kill_marked(attempt.attempt_id)
    config = read(Attempt, directory)
    is_of_this_boot = config.owner.boot_id == processes.boot_id() if config else is_there
    is_unborn = is_of_this_boot and not (directory / STARTED).exists()
    seconds = 0.0 if is_unborn else attempt.limits.reserve_ms / 1000
    outcome = end_if_abandoned(attempt, seconds)
    return outcome or lost(attempt, "its supervisor is alive, perhaps elsewhere", seconds)


@contextmanager
def insisted_on(received: list[int]) -> Iterator[None]:
    """Within the block a second SIGINT or SIGTERM raises Insisted in the main thread.

    It is for code that cannot check a flag: an evaluation in this process, the start of Ray. The
    handlers in place still get every signal, and are in place again afterwards. `received` counts
    from block to block.
    """

    def receive(signum: int, frame: FrameType | None) -> None:
        received.append(signum)
        if callable(handler := before[signal.Signals(signum)]):
            handler(signum, frame)
        if len(received) > 1:
            raise Insisted(signum)

    is_main = threading.current_thread() is threading.main_thread()
    before = {signum: signal.getsignal(signum) for signum in INTERRUPTS if is_main}
    try:
        for signum in before:
            signal.signal(signum, receive)
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if len(received) > 1:  # raised where Python drops exceptions, for example in a hook of fork
        raise Insisted(received[-1])
