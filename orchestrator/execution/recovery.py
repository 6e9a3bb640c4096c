"""What became of an attempt whose supervisor or orchestrator is gone."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path

from budgets.events import Status
from budgets.storage import FULL
from orchestrator.execution import processes
from orchestrator.execution.attempts import (
    CONFIG,
    LOCK,
    STARTED,
    SUMMARY,
    SUMMARY_ROOM,
    Started,
    locked,
    read,
    read_summary,
    write_summary,
)
from orchestrator.execution.evaluate import Attempt, Outcome

LOOK_SECONDS = 1.0  # for what is left of a tree to die, in one look


@dataclass(frozen=True)
class Unstarted:
    """Nothing was ever launched, and nothing will be: the reservation can be freed."""

    attempt_id: str


@dataclass(frozen=True)
class Unknown:
    """It may have run: the whole reservation is to be charged."""

    attempt_id: str
    cause: str


def recover(directory: Path, attempt_id: str, wait_seconds: float) -> Outcome | Unstarted | Unknown:
    """How an attempt of a dead orchestrator ended, once nothing of it is alive here.

    Waits up to `wait_seconds` for its supervisor, which ends by itself when its owner is dead,
    and kills whatever is left. Only call it while holding the ledger's lock: the owner must not
    be able to submit any more.
    """
    if not directory.is_dir():
        return Unknown(attempt_id, f"{directory} does not exist")
    if not any((directory / name).exists() for name in (CONFIG, STARTED, SUMMARY)):
        return Unstarted(attempt_id)  # the first is on disk before a supervisor is asked for
    with locked(directory, wait_seconds) as ended:
        if not ended:
            kill_supervisor(directory)
        if not processes.kill_marked(attempt_id):
            return Unknown(attempt_id, "processes of the attempt survive SIGKILL")
    with locked(directory, wait_seconds) as ended:
        if outcome := read_summary(directory, attempt_id):
            return outcome
        if not ended:
            return Unknown(attempt_id, "its supervisor is still alive, perhaps on another node")
        return _without_summary(directory, attempt_id)


def _without_summary(directory: Path, attempt_id: str) -> Unstarted | Unknown:
    if (directory / STARTED).exists():
        return Unknown(attempt_id, "its supervisor died before it could write a summary")
    attempt = read(Attempt, directory / CONFIG)
    if attempt is not None and processes.owner_is_gone(attempt.owner):
        return Unstarted(attempt_id)
    if attempt is None and _was_being_prepared(directory):
        return Unstarted(attempt_id)
    return Unknown(attempt_id, "its orchestrator ran elsewhere, or is still alive")


def _was_being_prepared(directory: Path) -> bool:
    """Whether its orchestrator died in the middle of `config.json`, before it asked for a start."""
    if any(path.name not in (CONFIG, LOCK) for path in directory.iterdir()):
        return False
    try:
        json.loads((directory / CONFIG).read_bytes())
    except ValueError:
        return True
    return False


def kill_supervisor(directory: Path) -> None:
    """SIGKILL the process that supervises the attempt on this machine, if there is one."""
    started = read(Started, directory / STARTED)
    if (
        started is not None
        and started.boot_id == processes.boot_id()
        and processes.is_alive(started.pid, started.start_ticks)
    ):
        processes.send([started.pid], signal.SIGKILL)


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
        cause = "its supervisor was killed" if started else "it was never started"
        lost = Outcome(attempt_id=attempt_id, status=Status.LOST, cause=cause, seconds=seconds)
        return _written_if_there_is_room(directory, lost)


def _written_if_there_is_room(directory: Path, lost: Outcome) -> Outcome:
    """The outcome is true without its file, too; a full disk is for the ledger to complain of."""
    (directory / SUMMARY_ROOM).unlink(missing_ok=True)
    try:
        return write_summary(directory, lost)
    except OSError as error:
        if error.errno not in FULL:
            raise
        return lost.model_copy(update={"cause": f"{lost.cause}; the disk is full"})
