"""The supervisor of one attempt: it starts the evaluation, watches it, and outlives it.

It is a process with a session of its own, adopts every orphan below it, and writes `summary.json`
when nothing below it is alive any more. It notices by itself when the executor or the orchestrator
is gone, and then ends the evaluation instead of leaving a trainer on a device.

Supervisors are forked by a fork server (`serve`). It has imported what evaluations need, has one
thread, and never touches CUDA, so a fork of it starts an evaluation in milliseconds. Its
supervisors survive it. (Ray kills the children of an actor that ends: the server, but not them.)
"""

import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from budgets.events import Owner, Status
from budgets.formatting import in_bytes, one_line
from budgets.storage import write_all
from objectives import process as kernel
from objectives.secrets import redacted
from orchestrator.execution import processes
from orchestrator.execution.api import (
    CONFIG,
    METRICS,
    SUMMARY,
    Attempt,
    Outcome,
    Report,
    device_name,
    locked,
    outcome_of,
    read,
    read_report,
    write_started,
    write_summary,
)
from orchestrator.execution.trainer import fork_trainer

LOCK_WAIT_SECONDS = 10.0
TICK_SECONDS = 0.05  # longest sleep; the end of the trainer wakes it earlier
CHECK_SECONDS = 0.25  # between two looks at memory and heartbeat
ORPHAN_GRACE_SECONDS = 1.0  # when nothing waits for the result any more
_DEADLINE = struct.Struct("d")  # by the monotonic clock


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
        self.descriptor = self._file.fileno()

    def extend(self, heard_at: float) -> bool:
        """Extend the lease from the time of the last answer; return False if that is too old."""
        deadline = heard_at + self.seconds
        if deadline > lease_deadline(self.descriptor):
            os.pwrite(self.descriptor, _DEADLINE.pack(deadline), 0)
        return time.monotonic() <= deadline

    def close(self) -> None:
        self._file.close()


def lease_deadline(descriptor: int) -> float:
    """Return when the lease expires, by the monotonic clock; 0 if it was never extended."""
    packed = os.pread(descriptor, _DEADLINE.size, 0) or _DEADLINE.pack(0.0)
    return float(_DEADLINE.unpack(packed)[0])


@dataclass(frozen=True)
class Supervision:
    """What all supervisors of one executor have in common."""

    notify: int  # a supervisor writes the attempt's directory to it at the end
    lifeline: int  # the read end of a pipe; only the executor's process holds the write end
    lease: int | None  # descriptor of a `Lease`
    threads: int
    host: str  # part of a device's name on a cluster; empty elsewhere

    def why_unwanted(self, owner: Owner) -> str:
        """Return why an attempt's result can no longer be used; empty while it can."""
        if self.lease is not None and time.monotonic() > lease_deadline(self.lease):
            return "the orchestrator has not renewed its lease"
        lifeline = select.poll()
        lifeline.register(self.lifeline, 0)
        if lifeline.poll(0):
            return "the executor's process is gone"
        if processes.owner_is_gone(owner):
            return "the orchestrator's process is gone"
        return ""


def serve(preload: str, ready: str, common: str) -> None:
    """Fork one supervisor per request until stdin is closed. In the supervisor: supervise, exit.

    A request is a line of JSON: the attempt's directory, whose `config.json` is on disk, and a GPU.
    """
    for name in filter(None, preload.split(",")):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # keeps the forks from copying every page at their first collection
    os.write(int(ready), b"ready")
    os.close(int(ready))
    # The kernel reaps the supervisors, also where process 1 never does.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        for line in sys.stdin.buffer:
            if os.fork() == 0:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # requests are for the server alone
                directory, gpu_id = json.loads(line)
                supervise(Path(directory), gpu_id, Supervision(**json.loads(common)))
                break
    finally:  # a supervisor never returns to the loop, whatever it raises
        sys.stdout.flush()
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(0)


def supervise(directory: Path, gpu_id: str | None, common: Supervision) -> None:
    """Run the attempt whose `config.json` is in the directory, from the marker to the summary.

    In the end it writes the directory to `notify`, also if the attempt could not be started.
    """
    began = time.monotonic()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # with the server's setting nothing can be reaped
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    processes.adopt_orphans()
    try:
        if attempt := read(Attempt, directory / CONFIG):
            watch = Watch(attempt, partial(common.why_unwanted, attempt.owner), began)
            signal.signal(signal.SIGTERM, watch.cancel)  # may come as soon as there is a marker
            with locked(directory, LOCK_WAIT_SECONDS) as is_mine:
                if is_mine and not (directory / SUMMARY).exists():
                    _supervise(watch, gpu_id, common)
    finally:
        with suppress(BrokenPipeError):  # the executor is gone
            os.write(common.notify, f"{directory}\n".encode())


def _supervise(watch: "Watch", gpu_id: str | None, common: Supervision) -> None:
    attempt, device = watch.attempt, device_name(gpu_id, common.host)
    # The marker is on disk before the owner is checked: if the owner is dead and there is no
    # marker, nothing was and nothing will be launched.
    write_started(attempt, device)
    watch.check_liveness()
    if watch.violation is None:
        watch.run(*fork_trainer(attempt, gpu_id, common.threads))
    is_over = watch.kill_tree(attempt.limits.grace_seconds)
    outcome = watch.outcome(device)
    if not is_over:  # a process waits in the kernel for something that hangs
        watch.kill_tree(math.inf)
    write_summary(attempt.directory, outcome)


@dataclass
class Watch:
    """One trainer and its tree, from the fork to the last reaped process.

    `why_unwanted` returns why the result can no longer be used, or an empty text.
    """

    attempt: Attempt
    why_unwanted: Callable[[], str]
    began: float
    violation: tuple[Status, str] | None = None
    trainer: int = 0
    exit_code: int | None = None  # of the trainer; negative for a signal
    peak_memory_bytes: int = 0
    logs: list["CappedLog"] = field(default_factory=list)
    _checked_at: float = -math.inf
    _active_at: float = 0.0
    _beat_at: int = 0  # when the heartbeats' file was last changed
    _oom_kills_before: int = field(default_factory=kernel.oom_kills)
    _end_of_trainer: int | None = None  # a pidfd

    def run(self, trainer: int, *pipes: int) -> None:
        """Return when the trainer has ended, or when the grace of a violation is over."""
        directory, cap = self.attempt.directory, self.attempt.limits.log_bytes
        self.trainer, self._end_of_trainer = trainer, os.pidfd_open(trainer)
        self.logs = [
            CappedLog(pipe, directory / name, cap)
            for pipe, name in zip(pipes, ("stdout.txt", "stderr.txt"), strict=True)
        ]
        self._active_at = time.monotonic()
        self._check()
        while self.exit_code is None and self.violation is None:
            self._turn()
            self._check()
        if self.violation is not None:
            self._ask_to_leave(self.violation[0])

    def cancel(self, *_: object) -> None:
        """End the attempt as cancelled. A signal handler; who sent the signal is not known."""
        self._violate(Status.CANCELLED, "its supervisor was told to end (SIGTERM)")

    def check_liveness(self) -> None:
        """End the attempt if its result can no longer be used."""
        if why := self.why_unwanted():
            self._violate(Status.LOST, why)

    def _turn(self) -> None:
        """Sleep until something happens, drain the pipes, reap."""
        poll = select.poll()
        for descriptor in (self._end_of_trainer, *(log.descriptor for log in self.logs)):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        poll.poll(TICK_SECONDS * 1000)
        self.check_liveness()  # first: this process may have slept much longer than asked
        if sum(log.drain() for log in self.logs):
            self._active_at = time.monotonic()
        self._reap()

    def _reap(self) -> bool:
        """Reap every child that has ended; return False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.trainer:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def _check(self) -> None:
        """Check every limit, in the order in which simultaneous violations are reported."""
        now = time.monotonic()
        if now - self.began > self.attempt.limits.wall_seconds:
            self._time_out(f"ran over {self.attempt.limits.wall_seconds:g} s")
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        used = processes.resident_bytes(processes.descendants(os.getpid()))
        self.peak_memory_bytes = max(self.peak_memory_bytes, used)
        limit = self.attempt.limits.memory_bytes
        if limit is not None and used > limit:
            self._violate(Status.OOM, f"used {in_bytes(used)} of {in_bytes(limit)}")
        self._check_progress(now)

    def _check_progress(self, now: float) -> None:
        with suppress(OSError):
            beat_at = (self.attempt.directory / METRICS).stat().st_mtime_ns
            if beat_at != self._beat_at:
                self._beat_at, self._active_at = beat_at, now
        limit = self.attempt.limits.stall_seconds
        if limit is not None and now - self._active_at > limit:
            self._time_out(f"stalled: no output or heartbeat for {limit:g} s")

    def _time_out(self, cause: str) -> None:
        self.check_liveness()  # again: if this process was stopped meanwhile, it is not a timeout
        self._violate(Status.TIMEOUT, cause)

    def _violate(self, status: Status, cause: str) -> None:
        if self.violation is None and self.exit_code is None:
            self.violation = (status, cause)

    def _ask_to_leave(self, why: Status) -> None:
        """Send SIGTERM to the tree, then wait for the trainer until the grace is over."""
        grace = self.attempt.limits.grace_seconds
        if why is Status.LOST:
            grace = min(grace, ORPHAN_GRACE_SECONDS)
        deadline = time.monotonic() + grace
        processes.send(processes.descendants(os.getpid()), signal.SIGTERM)
        while self.exit_code is None and time.monotonic() < deadline:
            self._turn()

    def kill_tree(self, timeout_seconds: float) -> bool:
        """SIGKILL every descendant until none is left; orphans become children and are reaped.

        Returns False if some survive the timeout: they wait in the kernel for something that hangs.
        """
        deadline, pause = time.monotonic() + timeout_seconds, 0.002
        while self._reap():
            if time.monotonic() > deadline:
                return False
            processes.send(processes.descendants(os.getpid()), signal.SIGKILL)
            for log in self.logs:
                log.drain()
            time.sleep(pause)
            pause = min(1.2 * pause, CHECK_SECONDS)
        for log in self.logs:
            log.drain()
            log.close()
        return True

    def outcome(self, device: str) -> Outcome:
        """Return how the attempt ended. Call it after `kill_tree`."""
        status, cause, report = self._verdict()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return outcome_of(
            self.attempt,
            status,
            cause,
            self.began,
            report,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_memory_bytes=self.peak_memory_bytes,
            device=device,
        )

    def _verdict(self) -> tuple[Status, str, Report | None]:
        # A result that was complete when its reader vanished is paid for: keep it.
        may_count = self.violation is None or self.violation[0] in (Status.LOST, Status.CANCELLED)
        problem = ""
        if self.trainer and may_count and (self.violation or self.exit_code == 0):
            try:
                report = read_report(self.attempt)
            except (OSError, ValueError) as error:
                problem = one_line(str(error))
            else:
                return report.status, report.cause, report
        if self.violation is not None:
            return *self.violation, None
        if self.exit_code == 0:
            return Status.ERROR, f"exited with 0, but left no result: {problem}", None
        return *self._crash(), None

    def _crash(self) -> tuple[Status, str]:
        assert self.exit_code is not None
        if self.exit_code > 0:
            last_line = self.logs[-1].last_line()
            cause = f"exited with status {self.exit_code}"
            return Status.ERROR, f"{cause}: {last_line}" if last_line else cause
        number = -self.exit_code
        name = next((one.name for one in signal.Signals if one == number), "")
        cause = f"killed by signal {number} {name}".rstrip()
        if number == signal.SIGKILL and kernel.oom_kills() > self._oom_kills_before:
            return Status.OOM, f"{cause}: the kernel ran out of memory"
        return Status.ERROR, cause


class CappedLog:
    """Copies a pipe into a file; of more than `cap_bytes` it keeps the first and the last half.

    The first half is written as it comes, the last one is kept in memory until `close`.
    """

    def __init__(self, descriptor: int, path: Path, cap_bytes: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor: int | None = descriptor  # None at the end of the output
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._half = cap_bytes // 2
        self._seen_bytes = 0
        self._end = bytearray()  # of all that was seen

    def drain(self, at_most_bytes: int = 1 << 20) -> int:
        """Read what is there without waiting; return the number of bytes, close at the end."""
        taken = 0
        while self.descriptor is not None and taken < at_most_bytes:
            try:
                chunk = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                break
            if not chunk:
                self._close_pipe()
            taken += len(chunk)
            self._write(chunk[: max(0, self._half - self._seen_bytes)])
            self._seen_bytes += len(chunk)
            self._end += chunk
            del self._end[: -self._half]
        return taken

    def last_line(self) -> str:
        """Return the last line that is not blank, without secrets."""
        text = self._end[-4096:].decode(errors="replace").strip()
        return redacted(text.rpartition("\n")[2].strip(), os.environ)[:200]

    def close(self) -> None:
        """Write the kept end and close the file; what is still in the pipe is lost."""
        missing = self._seen_bytes - self._half
        if missing > self._half:
            self._write(f"\n[... {missing - self._half} bytes dropped ...]\n".encode())
        if missing > 0:
            self._write(bytes(self._end[-missing:]))
        os.close(self._file)
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _write(self, data: bytes) -> None:
        with suppress(OSError):  # a full disk costs the log, not the evaluation
            write_all(self._file, data)
