"""The files in an attempt's directory, its lock, and how an attempt is recovered from them.

`config.json` is the Attempt; `started.json` is written before anything can be launched;
`metrics.jsonl` holds the heartbeats; `measurement.json` is the evaluation's own report, read with
suspicion; `summary.json` is the Outcome. `supervisor.lock` is held (flock) while a supervisor lives
and is never unlinked. Whoever writes `summary.json` holds it: an attempt ends once.
"""

import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, Field, ValidationError

from budgets.events import Owner, Status
from budgets.plan import Frozen
from budgets.storage import DISK, FULL, write_aside
from objectives.api import Measurement
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, Outcome, no_score

CONFIG, STARTED, METRICS = "config.json", "started.json", "metrics.jsonl"
MEASUREMENT, SUMMARY, LOCK = "measurement.json", "summary.json", "supervisor.lock"
NEVER_STARTED = "it was never started"
MEASUREMENT_LIMIT_BYTES = 1_000_000
LOOK_SECONDS = 1.0  # for what is left of a tree to die, in one look
Model = TypeVar("Model", bound=BaseModel)


class Started(Owner):
    """The supervisor that took the attempt on."""

    attempt_id: str
    device: str = ""  # see `device_name`


class Report(Frozen):
    """What the evaluation's own process says of its end (`measurement.json`)."""

    attempt_id: str
    status: Status
    cause: str = ""
    measurement: Measurement | None = None
    # monotonic clock, when the objective was called
    called_at: float | None = Field(default=None, allow_inf_nan=False)


def to_json(model: BaseModel) -> str:
    """One line of JSON that keeps NaN and infinity, which pydantic would write as null."""
    return json.dumps(model.model_dump(), default=str)


def write_model(path: Path, model: BaseModel, *, durable: bool = True) -> None:
    """Write it as JSON, whole or not at all."""
    write_aside(path, to_json(model).encode(), durable=durable)


def write_config(attempt: Attempt) -> None:
    """`config.json`, on disk before anybody is asked to start the attempt.

    Raises ValueError on a relative directory.
    """
    if not attempt.directory.is_absolute():
        raise ValueError(f"expected an absolute directory for the attempt, got {attempt.directory}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(attempt.directory / CONFIG, flags, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:  # in place: nobody looks yet
        file.write(to_json(attempt))
        file.flush()
        os.fsync(file.fileno())
    DISK.sync_directory(attempt.directory)


def write_summary(directory: Path, outcome: Outcome) -> Outcome:
    """Write the result; the caller holds the lock and has seen that there is none yet.

    The evaluation may have removed its own directory: then there is one with the result alone.
    """
    directory.mkdir(parents=True, exist_ok=True)
    write_model(directory / SUMMARY, outcome)
    return outcome


def read(model: type[Model], path: Path) -> Model | None:
    """The file's content, or None if it is absent or not (yet) what it should be."""
    try:
        with _opened(path) as file:
            return model.model_validate_json(file.read())
    except (OSError, ValidationError):
        return None


def _opened(path: Path) -> BinaryIO:
    """The file to read; OSError if a link, a pipe or a device is there, which could hang us."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(f"{path} is no regular file")
    return file


def read_summary(directory: Path, attempt_id: str) -> Outcome | None:
    """The attempt's result, if it has ended and the file is this attempt's."""
    outcome = read(Outcome, directory / SUMMARY)
    return outcome if outcome and outcome.attempt_id == attempt_id else None


def read_report(directory: Path, attempt_id: str) -> Report:
    """The evaluation's own report. Raises ValueError, saying why, if it cannot be believed."""
    path = directory / MEASUREMENT
    try:
        with _opened(path) as file:
            data = file.read(MEASUREMENT_LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise ValueError(f"no {MEASUREMENT} was written") from None
    except OSError as error:
        raise ValueError(f"{MEASUREMENT} cannot be read: {error.strerror or error}") from None
    if len(data) > MEASUREMENT_LIMIT_BYTES:
        raise ValueError(f"{MEASUREMENT} is larger than {MEASUREMENT_LIMIT_BYTES} bytes")
    try:
        report = Report.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{MEASUREMENT} is not valid: {where} {first['msg']}") from None
    if report.attempt_id != attempt_id:
        raise ValueError(f"{MEASUREMENT} is of attempt {report.attempt_id[:80]!r}")
    if report.status not in (Status.OK, Status.NAN, Status.OOM, Status.ERROR):
        raise ValueError(f"{MEASUREMENT} claims status {report.status.value!r}")
    if report.status is not Status.OK:
        return report
    if report.measurement is None:
        raise ValueError(f"{MEASUREMENT} says ok but holds no measurement")
    if why := no_score(report.measurement.score):
        return report.model_copy(update={"status": Status.NAN, "cause": why})
    return report


def take_lock(directory: Path, wait_seconds: float = 0.0) -> int | None:
    """A descriptor that holds the attempt's lock until it is closed, or None if another has it.

    An evaluation may have removed its own directory: then there is an empty one afterwards.
    """
    deadline = time.monotonic() + wait_seconds
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.02)
        else:
            return descriptor


@contextmanager
def locked(directory: Path, wait_seconds: float = 0.0) -> Iterator[bool]:
    """Holds the attempt's lock for the block, if it could be had: the value says so."""
    descriptor = take_lock(directory, wait_seconds)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def recover(attempt: Attempt, wait_seconds: float) -> Outcome:
    """How an attempt of a dead orchestrator ended, once nothing of it is alive here.

    Lost at no charge where nothing was launched and nothing will be, at the price of its whole
    reservation where it may have run. Waits up to `wait_seconds` for its supervisor, which ends by
    itself when its owner is dead, and kills whatever is left. Only call it while holding the
    ledger's lock: the owner must not be able to submit any more.
    """
    directory, name = attempt.directory, attempt.attempt_id
    why = ""
    if not directory.is_dir():
        why = f"{directory} does not exist"
    # The first of these is on disk before a supervisor is asked for.
    elif any((directory / one).exists() for one in (CONFIG, STARTED, SUMMARY)):
        with locked(directory, wait_seconds) as ended:
            if not ended:
                signal_supervisor(directory, signal.SIGKILL)
            is_dead = processes.kill_marked(name)
        with locked(directory, wait_seconds if is_dead else 0.0) as ended:
            if is_dead and (outcome := read_summary(directory, name)):
                return outcome
            why = _why_unknown(directory, is_dead=is_dead, is_unsupervised=ended)
    seconds = attempt.limits.reserve_ms / 1000 if why else 0.0
    cause = why or NEVER_STARTED
    return Outcome(attempt_id=name, status=Status.LOST, cause=cause, seconds=seconds)


def _why_unknown(directory: Path, *, is_dead: bool, is_unsupervised: bool) -> str:
    """Why the attempt may have run; empty where it cannot have."""
    if not is_dead:
        return "processes of the attempt survive SIGKILL"
    if not is_unsupervised:
        return "its supervisor is still alive, perhaps on another node"
    if (directory / STARTED).exists():
        return "its supervisor died before it could write a summary"
    attempt = read(Attempt, directory / CONFIG)
    is_unasked = processes.owner_is_gone(attempt.owner) if attempt else _is_half(directory)
    return "" if is_unasked else "its orchestrator ran elsewhere, or is still alive"


def _is_half(directory: Path) -> bool:
    """Whether its orchestrator died in the middle of `config.json`, before it asked for a start."""
    if any(path.name not in (CONFIG, LOCK) for path in directory.iterdir()):
        return False
    try:
        json.loads((directory / CONFIG).read_bytes())
    except ValueError:
        return True
    return False


def signal_supervisor(directory: Path, signum: signal.Signals) -> None:
    """Signal the process that supervises the attempt on this machine, if there is one."""
    started = read(Started, directory / STARTED)
    if (
        started is not None
        and started.boot_id == processes.boot_id()
        and processes.is_alive(started.pid, started.start_ticks)
    ):
        processes.send([started.pid], signum)


def end_if_abandoned(
    directory: Path, attempt_id: str, seconds: float, *, may_still_start: bool
) -> Outcome | None:
    """The outcome of an attempt nobody supervises (any more); None while somebody does.

    An attempt whose supervisor died gets the summary `lost`, `seconds` long, after its processes
    are gone. With that summary in place no supervisor that comes late will launch anything.
    """
    with locked(directory) as unsupervised:
        if not unsupervised:
            return None
        if outcome := read_summary(directory, attempt_id):
            return outcome
        started = (directory / STARTED).exists()
        if not started and may_still_start:
            return None
        if not processes.kill_marked(attempt_id, LOOK_SECONDS):
            return None
        cause = "its supervisor was killed" if started else NEVER_STARTED
        lost = Outcome(attempt_id=attempt_id, status=Status.LOST, cause=cause, seconds=seconds)
        try:
            return write_summary(directory, lost)
        except OSError as error:  # it is true without its file too; the ledger complains of a disk
            if error.errno not in FULL:
                raise
            return lost.model_copy(update={"cause": f"{cause}; the disk is full"})
