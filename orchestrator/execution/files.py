"""The files in an attempt's directory, its lock, and recovery of an attempt from them.

`config.json` holds the Attempt. `started.json` is written before anything is launched.
`metrics.jsonl` holds the heartbeats. `measurement.json` is the evaluation's own report and is not
trusted. `summary.json` is the Outcome. `supervisor.lock` is held (flock) while a supervisor lives
and is never unlinked. Only the holder of the lock writes `summary.json`, so an attempt ends once.
"""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from budgets.events import Owner, Status
from budgets.plan import Frozen
from budgets.storage import plain_file, read_plain, write_aside
from objectives.api import Measurement
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, Outcome, no_score

CONFIG, STARTED, METRICS = "config.json", "started.json", "metrics.jsonl"
MEASUREMENT, SUMMARY, LOCK = "measurement.json", "summary.json", "supervisor.lock"
NEVER_STARTED = "it was never started"
MEASUREMENT_LIMIT_BYTES = 1_000_000
KILL_SECONDS = 1.0  # how long one check waits for killed processes to disappear
Model = TypeVar("Model", bound=BaseModel)


class Started(Owner):
    """The supervisor of an attempt (`started.json`)."""

    attempt_id: str
    device: str = ""  # see `device_name`


class Report(Frozen):
    """How the evaluation ended by its own account (`measurement.json`)."""

    attempt_id: str
    status: Status
    cause: str = ""
    measurement: Measurement | None = None
    called_at: float | None = Field(default=None, allow_inf_nan=False)
    """By the monotonic clock: when the objective was called."""


def write_model(path: Path, model: BaseModel, *, durable: bool = True) -> None:
    """Write the model as JSON, whole or not at all.

    NaN and infinity are kept; pydantic's own JSON would turn them into null.
    """
    write_aside(path, json.dumps(model.model_dump(), default=str).encode(), durable=durable)


def write_config(attempt: Attempt) -> None:
    """Write `config.json` durably, before anyone is asked to start the attempt."""
    assert attempt.directory.is_absolute(), attempt.directory
    write_model(attempt.directory / CONFIG, attempt)


def write_started(attempt: Attempt, device: str) -> None:
    """Write `started.json`: this process supervises the attempt from now on.

    Not synced: after a power cut the boot id differs, and then the file decides nothing.
    """
    owner = processes.this_owner().model_dump()
    started = Started(attempt_id=attempt.attempt_id, device=device, **owner)
    write_model(attempt.directory / STARTED, started, durable=False)


def write_summary(directory: Path, outcome: Outcome) -> Outcome:
    """Write the result. The caller holds the lock and has seen that there is no result yet."""
    directory.mkdir(parents=True, exist_ok=True)  # the evaluation may have removed it
    write_model(directory / SUMMARY, outcome)
    return outcome


def read(model: type[Model], path: Path) -> Model | None:
    """Return the file's content; None if it is absent, invalid, or not a plain file."""
    try:
        return model.model_validate_json(read_plain(path))
    except (OSError, ValueError):
        return None


def read_summary(attempt: Attempt) -> Outcome | None:
    """Return the attempt's result if it has ended and the file belongs to this attempt."""
    outcome = read(Outcome, attempt.directory / SUMMARY)
    return outcome if outcome and outcome.attempt_id == attempt.attempt_id else None


def read_report(attempt: Attempt) -> Report:
    """Return the evaluation's own report. Raises ValueError with the reason if it is not valid."""
    try:
        with plain_file(attempt.directory / MEASUREMENT) as handle:
            report = Report.model_validate_json(os.read(handle, MEASUREMENT_LIMIT_BYTES))
    except FileNotFoundError:
        raise ValueError(f"no {MEASUREMENT} was written") from None
    except OSError as error:
        raise ValueError(f"{MEASUREMENT} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{MEASUREMENT} is not valid: {where} {first['msg']}") from None
    if report.attempt_id != attempt.attempt_id:
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
    """Return a descriptor that holds the attempt's lock until it is closed; None if it is taken.

    Creates the directory again if the evaluation has removed it.
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
    """Hold the attempt's lock for the block; the value is False if another process has it."""
    descriptor = take_lock(directory, wait_seconds)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def recover(attempt: Attempt, wait_seconds: float) -> Outcome:
    """Return how an attempt of a dead orchestrator ended, once none of its processes lives here.

    It is lost at no charge if nothing was and nothing will be launched, and charged its whole
    reservation if it may have run. Waits up to `wait_seconds` for its supervisor, which ends by
    itself when its owner is dead, then kills what is left. The caller holds the ledger's lock, so
    the owner cannot submit anything more.
    """
    directory, may_have_run = attempt.directory, ""
    if not directory.is_dir():
        may_have_run = f"{directory} does not exist"
    elif any((directory / file).exists() for file in (CONFIG, STARTED, SUMMARY)):
        with locked(directory, wait_seconds) as has_ended:
            if not has_ended:
                signal_supervisor(directory, signal.SIGKILL)
            is_dead = processes.kill_marked(attempt.attempt_id)
        with locked(directory, wait_seconds if is_dead else 0.0) as has_ended:
            if is_dead and (outcome := read_summary(attempt)):
                return outcome
            may_have_run = _may_have_run(directory, is_dead=is_dead, has_ended=has_ended)
    return Outcome(
        attempt_id=attempt.attempt_id,
        status=Status.LOST,
        cause=may_have_run or NEVER_STARTED,
        seconds=attempt.limits.reserve_ms / 1000 if may_have_run else 0.0,
    )


def _may_have_run(directory: Path, *, is_dead: bool, has_ended: bool) -> str:
    """Return why an attempt without a summary may have run; empty if it cannot have."""
    if not is_dead:
        return "processes of the attempt survive SIGKILL"
    if not has_ended:
        return "its supervisor is still alive, perhaps on another node"
    if (directory / STARTED).exists():
        return "its supervisor died before it could write a summary"
    attempt = read(Attempt, directory / CONFIG)
    if attempt is None or not processes.owner_is_gone(attempt.owner):
        return "its orchestrator ran elsewhere, or is still alive"
    return ""


def signal_supervisor(directory: Path, signum: signal.Signals) -> None:
    """Signal the attempt's supervisor if it runs on this machine."""
    started = read(Started, directory / STARTED)
    if started and processes.is_alive_here(started):
        processes.send([started.pid], signum)


def end_if_abandoned(attempt: Attempt, seconds: float, *, may_still_start: bool) -> Outcome | None:
    """Return the outcome of an attempt without a supervisor; None while it has one.

    If its supervisor died, its processes are killed, then it gets the summary `lost` with that
    duration. A supervisor that starts late finds the summary and launches nothing.
    """
    directory, name = attempt.directory, attempt.attempt_id
    with locked(directory) as is_unsupervised:
        if not is_unsupervised:
            return None
        if outcome := read_summary(attempt):
            return outcome
        has_started = (directory / STARTED).exists()
        if may_still_start and not has_started:
            return None
        if not processes.kill_marked(name, KILL_SECONDS):
            return None
        cause = "its supervisor was killed" if has_started else NEVER_STARTED
        lost = Outcome(attempt_id=name, status=Status.LOST, cause=cause, seconds=seconds)
        return write_summary(directory, lost)
