"""Executors on this machine: in this process, or each evaluation in a process of its own."""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from budgets.events import Status, Withdrawn
from orchestrator.execution import child, processes
from orchestrator.execution.attempts import (
    STARTED,
    Started,
    locked,
    read,
    read_summary,
    write_config,
    write_model,
    write_summary,
)
from orchestrator.execution.devices import visible_gpus
from orchestrator.execution.evaluate import Attempt, Launcher, Outcome, Slots
from orchestrator.execution.launch import Launch, Program
from orchestrator.execution.recovery import end_if_abandoned
from orchestrator.execution.server import EngineError, ForkServer

__all__ = ["EngineError", "InlineExecutor", "LocalExecutor"]

PROBE_SECONDS = 0.25  # how often attempts in flight are looked at without being announced
START_SECONDS = 60.0  # for a supervisor to appear under a live fork server
EXIT_SECONDS = 15.0  # for everything to be gone at the end, beyond the attempts' own grace


class InlineExecutor:
    """Evaluates in this process, when `wait` is called: no isolation and no limits.

    For analytic objectives and tests; it writes the same files as the others.
    """

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self._queue: deque[Attempt] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._queue:
            attempt = self._queue.popleft()
            cause = "it was never started"
            unstarted = Outcome(
                attempt_id=attempt.attempt_id, status=Status.CANCELLED, cause=cause, seconds=0.0
            )
            with locked(attempt.directory):
                write_summary(attempt.directory, unstarted)

    def free(self) -> int:
        return self.slots.count - len(self._queue)

    def submit(self, attempt: Attempt) -> None:
        if len(self._queue) >= self.slots.count:
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        self._queue.append(attempt)

    def wait(self, timeout_seconds: float) -> list[Outcome]:  # noqa: ARG002 - the Protocol's
        return [self._evaluate(self._queue.popleft())] if self._queue else []

    def _evaluate(self, attempt: Attempt) -> Outcome:
        began, cpu_began = time.monotonic(), time.process_time()
        started = Started(attempt_id=attempt.attempt_id, **processes.this_owner().model_dump())
        write_model(attempt.directory / STARTED, started, durable=False)
        with (
            open(attempt.directory / "stdout.txt", "w", opener=_private) as out,
            open(attempt.directory / "stderr.txt", "w", opener=_private) as err,
            redirect_stdout(out),
            redirect_stderr(err),
            _process_as_it_was(),
        ):
            report = child.evaluate(attempt, self.slots.device, self.slots.threads)
        outcome = Outcome(
            attempt_id=attempt.attempt_id,
            status=report.status,
            cause=report.cause,
            seconds=time.monotonic() - began,
            startup_seconds=(report.called_at or began) - began,
            cpu_seconds=time.process_time() - cpu_began,
            peak_memory_bytes=processes.resident_bytes([os.getpid()]),
            device=self.slots.device,
            measurement=report.measurement,
        )
        with locked(attempt.directory):
            return write_summary(attempt.directory, outcome)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def _process_as_it_was() -> Iterator[None]:
    """Undoes what an objective did to this process: its directory, its handlers, its copies."""
    directory, process = Path.cwd(), os.getpid()
    handlers = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)  # a fork that comes back is no second orchestrator
        os.chdir(directory)
        for signum, handler in handlers.items():
            if signal.getsignal(signum) is not handler:
                signal.signal(signum, handler)


@dataclass
class _Flight:
    attempt: Attempt
    gpu_id: str | None
    server: ForkServer
    submitted_at: float
    is_cancelled: bool = False

    def may_still_start(self) -> bool:
        age = time.monotonic() - self.submitted_at
        return self.server.is_alive() and age < START_SECONDS

    def ask_supervisor_to_end(self) -> None:
        started = read(Started, self.attempt.directory / STARTED)
        if started and processes.is_alive(started.pid, started.start_ticks):
            processes.send([started.pid], signal.SIGTERM)


class LocalExecutor:
    """Each evaluation in its own process tree under a supervisor, on this machine.

    `preload` are modules the fork server imports once; `program` is what runs for an attempt.
    GPUs are those visible to this process unless `gpu_ids` names them.
    """

    def __init__(
        self,
        slots: Slots,
        launcher: Launcher = "fork",
        preload: Sequence[str] = (),
        *,
        program: Program | None = None,
        gpu_ids: Sequence[str] | None = None,
    ) -> None:
        self.slots = slots
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self._launcher: Launcher = launcher
        self._preload = tuple(preload)
        self._program = program or Program()
        self._free = self._devices(gpu_ids)
        self._running: dict[str, _Flight] = {}
        self._server: ForkServer | None = None
        self._unread = b""
        self._probed_at = 0.0
        self._pipes: tuple[int, int, int, int] | None = None

    def _devices(self, gpu_ids: Sequence[str] | None) -> list[str | None]:
        if self.slots.device == "cpu":
            return [None] * self.slots.count
        found = list(gpu_ids) if gpu_ids is not None else [gpu for gpu, _ in visible_gpus()]
        if len(found) < self.slots.count:
            raise EngineError(
                f"{self.slots.count} GPUs asked for, but this machine offers {len(found)}; "
                f"ask for fewer, or check nvidia-smi and CUDA_VISIBLE_DEVICES"
            )
        return list(found[: self.slots.count])

    def __enter__(self) -> Self:
        self._pipes = (*os.pipe(), *os.pipe())
        try:
            self._live_server()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        graces = [flight.attempt.limits.grace_seconds for flight in self._running.values()]
        deadline = time.monotonic() + max(graces, default=0.0) + EXIT_SECONDS
        try:
            self.cancel()
            while self._running and time.monotonic() < deadline:
                self.wait(PROBE_SECONDS)
        finally:
            self._close()  # the lifeline breaks: what still runs ends by itself

    def free(self) -> int:
        return len(self._free)

    def submit(self, attempt: Attempt, *, has_config: bool = False) -> None:
        if not self._free:
            raise EngineError(f"all {self.slots.count} slots are in use")
        server = self._live_server()
        if not has_config:
            write_config(attempt)
        gpu_id = self._free.pop(0)
        self._running[attempt.attempt_id] = _Flight(attempt, gpu_id, server, time.monotonic())
        server.ask(
            Launch(
                attempt=attempt,
                launcher=self._launcher,
                program=self._program,
                gpu_id=gpu_id,
                threads=self.slots.threads,
            )
        )

    def cancel(self) -> None:
        """Ask every attempt in flight to end; their outcomes come through `wait`."""
        for flight in list(self._running.values()):
            flight.is_cancelled = True
            flight.ask_supervisor_to_end()

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        arrived: list[Outcome] = []
        while self._running and not arrived:
            left = deadline - time.monotonic()
            candidates = self._announced(min(PROBE_SECONDS, max(left, 0.0)))
            if time.monotonic() - self._probed_at >= PROBE_SECONDS:
                self._probed_at, candidates = time.monotonic(), list(self._running)
            arrived = [found for name in candidates if (found := self._ended(name)) is not None]
            if left <= 0:
                break
        return arrived

    def _announced(self, timeout_seconds: float) -> list[str]:
        """Attempts whose supervisors say on the pipe that they have ended."""
        assert self._pipes is not None, "submit and wait need the executor entered"
        if not select.select([self._pipes[0]], [], [], timeout_seconds)[0]:
            return []
        *lines, self._unread = (self._unread + os.read(self._pipes[0], 1 << 16)).split(b"\n")
        return [name for line in lines if (name := line.decode()) in self._running]

    def _ended(self, attempt_id: str) -> Outcome | None:
        flight = self._running[attempt_id]
        directory = flight.attempt.directory
        seconds = time.monotonic() - flight.submitted_at
        outcome = read_summary(directory, attempt_id) or end_if_abandoned(
            directory, attempt_id, seconds, may_still_start=flight.may_still_start()
        )
        if outcome is not None:
            del self._running[attempt_id]
            self._free.append(flight.gpu_id)
        elif flight.is_cancelled:
            flight.ask_supervisor_to_end()
        return outcome

    def _live_server(self) -> ForkServer:
        assert self._pipes is not None, "submit and wait need the executor entered"
        if self._server is None or not self._server.is_alive():
            if self._server is not None:
                self._server.close()
            _, notify, lifeline, _ = self._pipes
            self._server = ForkServer(self._preload, self.slots.threads, notify, lifeline)
        return self._server

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for descriptor in self._pipes or ():
            os.close(descriptor)
        self._pipes = None
