"""The files in an attempt's directory, and the lock that says whether it is supervised.

`config.json` is the Attempt; `started.json` is written before anything can be launched;
`metrics.jsonl` holds the heartbeats; `measurement.json` is the evaluation's own word, read with
suspicion; `summary.json` is the Outcome, and `stuck.json` the one so far of an attempt that cannot
be ended. `supervisor.lock` is held (flock) while a supervisor lives and is never unlinked. Whoever
writes `summary.json` holds it: an attempt ends once.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, Field, ValidationError

from budgets.events import Owner, Status
from budgets.plan import Frozen
from budgets.storage import DISK, FULL, write_all, write_aside
from objectives.api import Measurement
from orchestrator.execution.evaluate import Attempt, Outcome, no_score
from orchestrator.execution.processes import MARK_LENGTH

CONFIG, STARTED, METRICS = "config.json", "started.json", "metrics.jsonl"
MEASUREMENT, SUMMARY, LOCK = "measurement.json", "summary.json", "supervisor.lock"
STUCK, SUMMARY_ROOM = "stuck.json", ".summary.json.room"
MEASUREMENT_LIMIT_BYTES = 1_000_000
SUMMARY_ROOM_BYTES = 64 * 1024  # far more than a summary with a screenful of metrics
FULL_DISK_POLL_SECONDS = 0.2
Model = TypeVar("Model", bound=BaseModel)


class Started(Owner):
    """The supervisor that took the attempt on."""

    attempt_id: str
    device: str = ""  # see `device_name`; empty: by a version that did not say


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


def write_config(attempt: Attempt) -> Path:
    """`config.json`, on disk before anybody is asked to start the attempt.

    Raises ValueError on a relative directory or an id that no process could carry.
    """
    if not attempt.directory.is_absolute():
        raise ValueError(f"expected an absolute directory for the attempt, got {attempt.directory}")
    if not 0 < len(attempt.attempt_id.encode()) <= MARK_LENGTH or "\0" in attempt.attempt_id:
        raise ValueError(f"expected an attempt id of 1 to {MARK_LENGTH} bytes")
    path = attempt.directory / CONFIG
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:  # in place: nobody looks yet
        file.write(to_json(attempt))
        file.flush()
        os.fsync(file.fileno())
    DISK.sync_directory(attempt.directory)
    return path


def write_summary(directory: Path, outcome: Outcome) -> Outcome:
    """Write the result; the caller holds the lock and has seen that there is none yet."""
    write_model(directory / SUMMARY, outcome)
    return outcome


class SummaryRoom:
    """Disk space set aside for `summary.json`: also what fills the disk comes to a result.

    Made before the evaluation starts; without the space it is an ordinary file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._aside = directory / SUMMARY_ROOM
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(self._aside, flags, 0o600)
        with suppress(OSError, AttributeError):  # macOS has no such call
            os.posix_fallocate(self._file, 0, SUMMARY_ROOM_BYTES)

    def write(self, outcome: Outcome, patience_seconds: float) -> Outcome:
        """Write the result as `write_summary` does; on a full disk try again for a while."""
        deadline = time.monotonic() + patience_seconds
        data = to_json(outcome).encode()
        while True:
            try:
                self._write(data)
            except OSError as error:
                if error.errno not in FULL or time.monotonic() > deadline:
                    raise
                time.sleep(FULL_DISK_POLL_SECONDS)
            else:
                return outcome

    def _write(self, data: bytes) -> None:
        os.lseek(self._file, 0, os.SEEK_SET)
        write_all(self._file, data)
        os.ftruncate(self._file, len(data))
        os.fsync(self._file)
        try:
            self._aside.rename(self._directory / SUMMARY)
        except FileNotFoundError:  # the evaluation has removed it, its whole directory perhaps
            self._directory.mkdir(parents=True, exist_ok=True)
            write_aside(self._directory / SUMMARY, data)
        DISK.sync_directory(self._directory)


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
    """The evaluation's own word. Raises ValueError, saying why, if it cannot be believed."""
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
