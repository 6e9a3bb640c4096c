"""The supervisor of one attempt: it starts the evaluation, watches it, and outlives it.

It is a process of its own in its own session, adopts every orphan below it, and writes
`summary.json` when nothing below it is alive any more. It needs nobody: whether the executor or
the orchestrator is gone it sees by itself, and it then ends the evaluation rather than leave a
trainer on a device.
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
    STARTED,
    SUMMARY,
    Started,
    read,
    take_lock,
    write_model,
    write_summary,
)
from orchestrator.execution.trainer import Launch
from orchestrator.execution.watch import Watch

LOCK_WAIT_SECONDS = 10.0
_DEADLINE = struct.Struct("dd")  # monotonic time at which it ends; its length, for people


class Lease:
    """A deadline that an executor shares with its supervisors through one inherited descriptor.

    It is for an orchestrator on another machine, which may freeze, lose its network, or see this
    machine freeze. It is renewed with a time of this machine's own clock: the orchestrator sends
    back the time that the last answer from here carried. So a renewal that waited in the queue of
    a frozen process extends nothing, and an orchestrator that has had no answer for the length of
    a lease knows that the lease has run out. It has run out until it is extended the first time.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed in `close`
        self._write(0.0)

    @property
    def descriptor(self) -> int:
        return self._file.fileno()

    def extend(self, heard_at: float) -> bool:
        """The orchestrator has heard what was said here at that time. False: that is too old."""
        ends_at = heard_at + self.seconds
        if ends_at > lease_ends(self.descriptor)[0]:
            self._write(ends_at)
        return time.monotonic() <= ends_at

    def close(self) -> None:
        self._file.close()

    def _write(self, ends_at: float) -> None:
        os.pwrite(self.descriptor, _DEADLINE.pack(ends_at, self.seconds), 0)


def lease_ends(descriptor: int) -> tuple[float, float]:
    """When the lease runs out, on the monotonic clock, and how long one lasts."""
    ends_at, seconds = _DEADLINE.unpack(os.pread(descriptor, _DEADLINE.size, 0))
    return ends_at, seconds


@dataclass(frozen=True)
class Supervision:
    """What all supervisors of one executor have in common."""

    notify: int  # where the directory of an attempt is written when it has ended
    lifeline: int  # the read end of a pipe whose write end only the executor's process holds
    lease: int | None  # descriptor of a `Lease`
    entry: str  # see `trainer.MAIN`
    threads: int
    host: str  # part of a device's name on a cluster; empty elsewhere

    def why_unwanted(self, owner: Owner) -> str:
        """Why nobody is left to use an attempt's result; empty while somebody may be."""
        if self.lease is not None:
            ends_at, seconds = lease_ends(self.lease)
            if time.monotonic() > ends_at:
                return f"the orchestrator has not renewed its lease for {seconds:g} s"
        hung_up = select.poll()
        hung_up.register(self.lifeline, 0)
        if hung_up.poll(0):
            return "the executor's process is gone"
        if processes.owner_is_gone(owner):
            return "the orchestrator's process is gone"
        return ""


def supervise(directory: Path, gpu_id: str | None, common: Supervision) -> None:
    """Run the attempt whose `config.json` is there, from the marker to the summary.

    The directory goes to `notify` after `summary.json` is on disk, or if it cannot be begun.
    """
    began = time.monotonic()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the server's setting would reap for us
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    processes.adopt_orphans()
    attempt = read(Attempt, directory / CONFIG)
    if attempt is None:
        return _notify(common, directory)
    watch = Watch(attempt, partial(common.why_unwanted, attempt.owner), began)
    signal.signal(signal.SIGTERM, watch.cancel)  # who reads the marker may send it at once
    device = device_name(gpu_id, common.host)
    try:
        if not _begin(attempt, device):
            return None
    except OSError:  # a full disk: whoever waits for it need not
        return _notify(common, directory)
    _see_through(watch, Launch(attempt, common.entry, gpu_id, common.threads), device, common)
    return None


def _begin(attempt: Attempt, device: str) -> bool:
    """Take the attempt's lock, for good, and mark it; False where somebody has ended it already."""
    directory = attempt.directory
    if take_lock(directory, LOCK_WAIT_SECONDS) is None or (directory / SUMMARY).exists():
        return False
    me = processes.this_owner()
    started = Started(attempt_id=attempt.attempt_id, device=device, **me.model_dump())
    # Not synced: after a power cut the boot is another one, and then the marker decides nothing.
    write_model(directory / STARTED, started, durable=False)
    return True


def _see_through(watch: Watch, launch: Launch, device: str, common: Supervision) -> None:
    """From the trainer's start until nothing is left of it, and that is on disk."""
    attempt = launch.attempt
    # The marker is on disk before the owner is looked at: whoever finds the owner dead and no
    # marker knows that nothing was and nothing will be launched.
    watch.check_liveness()
    if watch.violation is None:
        watch.run(launch)
    is_over = watch.kill_tree(attempt.limits.grace_seconds)
    outcome = watch.outcome(device)
    if not is_over:  # it waits in the kernel for something that hangs
        watch.kill_tree(math.inf)
    write_summary(attempt.directory, outcome)
    _notify(common, attempt.directory)


def _notify(common: Supervision, directory: Path) -> None:
    with suppress(BrokenPipeError):  # nobody is left to hear it
        os.write(common.notify, f"{directory}\n".encode())
