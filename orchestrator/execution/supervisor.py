"""The supervisor of one attempt: it starts the evaluation, watches it, and outlives it.

It is a process with a session of its own, adopts every orphan below it, and writes `summary.json`
when nothing below it is alive any more. It notices by itself when the executor or the orchestrator
is gone, and then ends the evaluation instead of leaving a trainer on a device.
"""

import math
import os
import select
import signal
import struct
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from budgets.events import Owner
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, device_name
from orchestrator.execution.files import (
    CONFIG,
    SUMMARY,
    read,
    take_lock,
    write_started,
    write_summary,
)
from orchestrator.execution.trainer import fork_trainer
from orchestrator.execution.watch import Watch

LOCK_WAIT_SECONDS = 10.0
_DEADLINE = struct.Struct("dd")  # monotonic time of the deadline; length of the lease, for people


class Lease:
    """A deadline that an executor shares with its supervisors through an inherited descriptor.

    It is for an orchestrator on another machine, which may freeze or lose its network, or see this
    machine freeze. It is renewed with a time of this machine's clock: the orchestrator sends back
    the time that the last answer from here carried. So a renewal that was queued in a frozen
    process extends nothing, and an orchestrator without an answer for the length of a lease knows
    that the lease has expired. A new lease has expired until it is first extended.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed in `close`
        self._write(0.0)

    @property
    def descriptor(self) -> int:
        return self._file.fileno()

    def extend(self, heard_at: float) -> bool:
        """Extend the lease from the time of the last answer; return False if that is too old."""
        deadline = heard_at + self.seconds
        if deadline > lease_deadline(self.descriptor)[0]:
            self._write(deadline)
        return time.monotonic() <= deadline

    def close(self) -> None:
        self._file.close()

    def _write(self, deadline: float) -> None:
        os.pwrite(self.descriptor, _DEADLINE.pack(deadline, self.seconds), 0)


def lease_deadline(descriptor: int) -> tuple[float, float]:
    """Return when the lease expires, on the monotonic clock, and the length of a lease."""
    deadline, seconds = _DEADLINE.unpack(os.pread(descriptor, _DEADLINE.size, 0))
    return deadline, seconds


@dataclass(frozen=True)
class Supervision:
    """What all supervisors of one executor have in common."""

    notify: int  # a supervisor writes the attempt's directory to it at the end
    lifeline: int  # the read end of a pipe; only the executor's process holds the write end
    lease: int | None  # descriptor of a `Lease`
    entry: str  # see `trainer.MAIN`
    threads: int
    host: str  # part of a device's name on a cluster; empty elsewhere

    def why_unwanted(self, owner: Owner) -> str:
        """Return why nobody can use an attempt's result any more; empty while somebody may."""
        if self.lease is not None:
            deadline, seconds = lease_deadline(self.lease)
            if time.monotonic() > deadline:
                return f"the orchestrator has not renewed its lease for {seconds:g} s"
        lifeline = select.poll()
        lifeline.register(self.lifeline, 0)
        if lifeline.poll(0):
            return "the executor's process is gone"
        if processes.owner_is_gone(owner):
            return "the orchestrator's process is gone"
        return ""


def supervise(directory: Path, gpu_id: str | None, common: Supervision) -> None:
    """Run the attempt whose `config.json` is in the directory, from the marker to the summary.

    Writes the directory to `notify` when `summary.json` is on disk, or if the attempt cannot be
    started.
    """
    began = time.monotonic()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # with the server's setting nothing can be reaped
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    processes.adopt_orphans()
    attempt = read(Attempt, directory / CONFIG)
    if attempt is None:
        return _notify(common, directory)
    watch = Watch(attempt, partial(common.why_unwanted, attempt.owner), began)
    signal.signal(signal.SIGTERM, watch.cancel)  # may come as soon as the marker can be read
    device = device_name(gpu_id, common.host)
    try:
        if not _begin(attempt, device):
            return None
    except OSError:  # a full disk; do not let the executor wait
        return _notify(common, directory)
    # The marker is on disk before the owner is checked: if the owner is dead and there is no
    # marker, nothing was and nothing will be launched.
    watch.check_liveness()
    if watch.violation is None:
        watch.run(partial(fork_trainer, attempt, gpu_id, common.threads, common.entry))
    is_over = watch.kill_tree(attempt.limits.grace_seconds)
    outcome = watch.outcome(device)
    if not is_over:  # a process waits in the kernel for something that hangs
        watch.kill_tree(math.inf)
    write_summary(directory, outcome)
    return _notify(common, directory)


def _begin(attempt: Attempt, device: str) -> bool:
    """Take the attempt's lock, never to release it, and write the marker.

    Returns False if the attempt has ended or has another supervisor.
    """
    directory = attempt.directory
    if take_lock(directory, LOCK_WAIT_SECONDS) is None or (directory / SUMMARY).exists():
        return False
    write_started(attempt, device)
    return True


def _notify(common: Supervision, directory: Path) -> None:
    with suppress(BrokenPipeError):  # the executor is gone
        os.write(common.notify, f"{directory}\n".encode())
