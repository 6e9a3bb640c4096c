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
import socket
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from budgets.events import Status
from objectives import process as kernel
from objectives.secrets import redacted
from orchestrator.execution import api, processes
from orchestrator.execution.api import Attempt, Outcome, Report
from orchestrator.execution.trainer import fork_trainer

LEAST_CPU_SHARE = 0.01  # CPU time, as a share of the stall limit, that is a sign of life
TICK_SECONDS = 0.1  # between two looks at the limits; the end of the trainer wakes it earlier
ORPHAN_GRACE_SECONDS = 1.0  # when nothing waits for the result any more
DROPPED = b"\n[... output dropped ...]\n"
CANCEL = b"c"  # sent by an executor: end the attempt


def serve(preload: str) -> None:
    """Fork one supervisor per request until stdin is closed. In the supervisor: supervise, exit.

    With a request comes the supervisor's end of its line to the executor.
    """
    for name in filter(None, preload.split(",")):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # keeps the forks from copying every page at their first collection
    # The kernel reaps the supervisors, also where process 1 never does.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests = socket.socket(fileno=0)
    requests.send(b"ready")
    try:
        while (request := socket.recv_fds(requests, 1 << 16, 1))[0]:
            with socket.socket(fileno=request[1][0]) as line:
                if os.fork() == 0:
                    os.setsid()
                    os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # requests are for the server alone
                    supervise(line, json.loads(request[0]))
                    break
    finally:  # a supervisor never returns to the loop, whatever it raises
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(0)


def supervise(line: socket.socket, request: dict[str, Any]) -> None:
    """Run an attempt from the marker to the summary; the caller then closes the line.

    The request is the attempt's directory, whose `config.json` is on disk, and fields of `Watch`.
    """
    began, directory = time.monotonic(), Path(request.pop("directory"))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # with the server's setting nothing can be reaped
    processes.adopt_orphans()
    if attempt := api.read(Attempt, directory):
        watch = Watch(attempt, line, began, **request)
        signal.signal(signal.SIGTERM, watch.end)  # may come as soon as there is a marker
        with api.locked(directory) as is_mine:
            if is_mine and not (directory / api.SUMMARY).exists():
                watch.carry_out()


@dataclass
class Watch:
    """One trainer and its tree, from the fork to the last reaped process."""

    attempt: Attempt
    line: socket.socket  # to the executor, which alone holds the other end
    began: float
    gpu_id: str | None = None
    threads: int = 1
    host: str = ""
    deadline: float = math.inf  # by the monotonic clock
    violation: tuple[Status, str] | None = None
    trainer: int = 0
    exit_code: int | None = None  # of the trainer; negative for a signal
    peak_memory_bytes: int = 0
    logs: tuple[int, ...] = ()  # descriptors of stdout.txt and stderr.txt
    _active_at: float = 0.0
    _changed: list[int] = field(default_factory=lambda: [0])  # signs of life as last seen
    _oom_kills_before: int = field(default_factory=kernel.oom_kills)

    def carry_out(self) -> None:
        """Start the evaluation and return when it has ended and its summary is written."""
        # The marker is on disk before the owner is checked: if the owner is dead and there is no
        # marker, nothing was and nothing will be launched.
        api.write_started(self.attempt, api.device_name(self.gpu_id, self.host))
        self.check_wanted()
        if self.violation is None:
            self.logs = api.open_logs(self.attempt.directory)
            self._watch(fork_trainer(self.attempt, self.gpu_id, self.threads, self.logs))
        is_over = self.kill_tree(self.attempt.limits.grace_seconds)
        for log in self.logs:
            shorten(log, self.attempt.limits.log_bytes)
        outcome = self.outcome()
        if not is_over:  # a process waits in the kernel for something that hangs
            self.kill_tree(math.inf)
        api.write_summary(self.attempt.directory, outcome)

    def _watch(self, trainer: int) -> None:
        """Return when the trainer has ended, or when the grace of a violation is over."""
        self.trainer, end = trainer, os.pidfd_open(trainer)
        self._active_at = time.monotonic()
        self._check()
        while self.exit_code is None and self.violation is None:
            self._sleep(end)
            self._check()
        if self.violation is None:
            return
        grace = self.attempt.limits.grace_seconds
        if self.violation[0] is Status.LOST:
            grace = min(grace, ORPHAN_GRACE_SECONDS)
        deadline = time.monotonic() + grace
        processes.send(processes.descendants(os.getpid()), signal.SIGTERM)
        while self.exit_code is None and time.monotonic() < deadline:
            self._sleep(end)

    def end(self, *_: object) -> None:
        """End the attempt as lost. A signal handler: the executor would use the line."""
        self._violate(Status.LOST, "its supervisor was told to end (SIGTERM)")

    def check_wanted(self) -> None:
        """End the attempt if its executor says so, or its result can no longer be used.

        The line carries CANCEL or a later deadline, and closes with the executor's process.
        """
        while select.select([self.line], [], [], 0)[0]:
            if not (said := self.line.recv(64)):
                self._violate(Status.LOST, "the executor's process is gone")
                break
            if said == CANCEL:
                self._violate(Status.CANCELLED, "cancelled by the orchestrator")
            else:
                self.deadline = float(said)
        if time.monotonic() > self.deadline:
            self._violate(Status.LOST, "the orchestrator has not renewed its lease")
        if processes.owner_is_gone(self.attempt.owner):
            self._violate(Status.LOST, "the orchestrator's process is gone")

    def _sleep(self, end: int) -> None:
        """Sleep until the trainer ends, at most a moment; reap."""
        select.select([end], [], [], TICK_SECONDS)
        self._reap()
        for log in self.logs:
            shorten(log, self.attempt.limits.log_bytes)
        self.check_wanted()  # last: this process may have been stopped meanwhile

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
        now, limits = time.monotonic(), self.attempt.limits
        if now - self.began > limits.wall_seconds:
            self._violate(Status.TIMEOUT, f"ran over {limits.wall_seconds:g} s")
        tree = processes.descendants(os.getpid())
        used = processes.resident_bytes(tree)
        self.peak_memory_bytes = max(self.peak_memory_bytes, used)
        if limits.memory_bytes is not None and used > limits.memory_bytes:
            self._violate(Status.OOM, f"used {decimal(used)} of {decimal(limits.memory_bytes)}")
        changed = [os.fstat(log).st_mtime_ns for log in self.logs]
        with suppress(OSError):
            changed.append((self.attempt.directory / api.METRICS).stat().st_mtime_ns)
        if limits.stall_seconds is not None:
            share = processes.cpu_seconds(tree) / (LEAST_CPU_SHARE * limits.stall_seconds)
            changed.append(int(share))  # it falls when an adopted process ends: a sign of life too
        if changed != self._changed:
            self._changed, self._active_at = changed, now
        if limits.stall_seconds is not None and now - self._active_at > limits.stall_seconds:
            silent = f"no output, heartbeat or CPU time for {limits.stall_seconds:g} s"
            self._violate(Status.TIMEOUT, f"stalled: {silent}")

    def _violate(self, status: Status, cause: str) -> None:
        if self.violation is None and self.exit_code is None:
            self.violation = (status, cause)

    def kill_tree(self, timeout_seconds: float) -> bool:
        """SIGKILL every descendant until none is left; orphans become children and are reaped.

        Returns False if some survive the timeout: they wait in the kernel for something that hangs.
        """
        deadline, pause = time.monotonic() + timeout_seconds, 0.002
        while self._reap():
            if time.monotonic() > deadline:
                return False
            processes.send(processes.descendants(os.getpid()), signal.SIGKILL)
            time.sleep(pause)
            pause = min(1.2 * pause, TICK_SECONDS)
        return True

    def outcome(self) -> Outcome:
        """Return how the attempt ended. Call it after `kill_tree`."""
        status, cause, report = self._ending()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return api.outcome_of(
            self.attempt,
            status,
            cause,
            self.began,
            report,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_memory_bytes=self.peak_memory_bytes,
            device=api.device_name(self.gpu_id, self.host),
        )

    def _ending(self) -> tuple[Status, str, Report | None]:
        own = api.read_own(self.attempt, Report) if self.trainer else None
        counts = self.exit_code == 0
        if self.violation is not None:  # a result that was complete when its reader vanished is
            counts = self.violation[0] in (Status.LOST, Status.CANCELLED)  # paid for: keep it
        if own and counts:
            return own.status, own.cause, own
        if self.violation is not None:
            return *self.violation, None
        assert self.exit_code is not None
        if self.exit_code == 0:
            return Status.ERROR, f"exited with 0, but left no valid {api.MEASUREMENT}", None
        cause = kernel.how_it_ended(self.exit_code)
        if self.exit_code == -signal.SIGKILL and kernel.oom_kills() > self._oom_kills_before:
            return Status.OOM, f"{cause}: the kernel ran out of memory", None
        said = last_line(self.logs[1]) if self.exit_code > 0 else ""
        return Status.ERROR, f"{cause}: {said}" if said else cause, None


def shorten(log: int, most_bytes: int) -> None:
    """Of a longer log, keep the beginning and the end; what is written meanwhile may be lost."""
    size, half = os.fstat(log).st_size, most_bytes // 2
    if size > most_bytes:
        end_bytes = max(0, half - len(DROPPED))
        end = os.pread(log, end_bytes, size - end_bytes)
        os.ftruncate(log, half)
        with suppress(OSError):  # a full disk costs the log, not the evaluation
            os.write(log, DROPPED + end)


def last_line(log: int) -> str:
    """Return the last line of a log, without secrets."""
    end = os.pread(log, 4096, max(0, os.fstat(log).st_size - 4096))
    return redacted(kernel.last_word(end.decode(errors="replace").splitlines()), os.environ)[:200]
