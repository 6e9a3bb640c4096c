"""The executor for this machine: each evaluation runs in a process tree of its own."""

import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from budgets.events import Status
from budgets.failure_causes import cause_of
from budgets.plan import Devices
from objectives.process import MARK
from orchestrator.execution import processes
from orchestrator.execution.api import (
    Attempt,
    EngineError,
    Outcome,
    device_name,
    end_if_abandoned,
    lost,
    read_summary,
    signal_supervisor,
    write_config,
)
from orchestrator.execution.devices import visible_gpus
from orchestrator.execution.supervisor import Lease, Supervision

PROBE_SECONDS = 0.25  # between two looks at attempts whose end was not announced, or at GPUs
EXIT_SECONDS = 15.0  # for all processes to end when the executor closes, beyond their own grace
OVERRUN_SECONDS = 10.0  # beyond its reservation; then an attempt's supervisor is killed
RELEASE_SECONDS = 5.0  # the driver frees a process's memory a moment after its end
READY_SECONDS = 180.0  # importing torch took 13 s on a loaded machine
START = """
import sys
package = sys.argv.pop(1)
if package not in sys.path:  # an installed package is there already, behind the standard library
    sys.path.insert(0, package)
from orchestrator.execution.supervisor import serve
serve(*sys.argv[1:])
"""
"""The fork server's program: the first argument is where this package is."""

Device = str | None
"""A GPU's id, or None for the CPU."""


class ForkServer:
    """A running fork server (`supervisor.serve`); raises EngineError if it does not get ready."""

    def __init__(self, preload: Sequence[str], common: Supervision) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        package = str(Path(__file__).parents[2])
        arguments = [package, ",".join(preload), json.dumps(asdict(common))]
        inherited = (common.notify, common.lifeline, common.lease)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=[descriptor for descriptor in inherited if descriptor is not None],
            start_new_session=True,  # a Ctrl-C in the terminal does not reach it
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(common.threads),
                "OPENBLAS_NUM_THREADS": "1",  # a process with threads must not be forked
                "PYTHONUNBUFFERED": "1",
                MARK: "-" * processes.MARK_LENGTH,  # room for it
            },
            bufsize=0,
        )
        assert self._process.stdout is not None
        with self._process.stdout as answer:  # is closed when the server ends
            is_ready = select.select([answer], [], [], READY_SECONDS)[0] and answer.read(8)
        if not is_ready:
            self._process.kill()
            output = os.pread(self._errors.fileno(), 1 << 20, 0).decode(errors="replace")
            self.close()
            raise EngineError(f"the fork server did not start:\n{output.strip()[-2000:]}")

    def is_alive(self) -> bool:
        """Return False once the server has died; it is then reaped."""
        return self._process.poll() is None

    def ask(self, directory: Path, gpu_id: str | None) -> None:
        """Request a supervisor. If the server is dead, the attempt never starts."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([str(directory), gpu_id]).encode() + b"\n")

    def close(self) -> None:
        """End the server by closing its stdin. Its supervisors live on."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._process.kill()
        self._process.wait()
        self._errors.close()


@dataclass
class _Running:
    """An attempt that was started and has not come back."""

    attempt: Attempt
    device: Device
    server: ForkServer
    started_at: float
    is_announced: bool = False  # its supervisor has said that it ends

    def seconds(self) -> float:
        return time.monotonic() - self.started_at


class LocalExecutor:
    """Runs each evaluation under a supervisor, on the devices of this machine.

    `preload` are modules that the fork server imports once; `host` is part of the names of devices
    on a cluster. With a `lease`, evaluations end unless it is extended in time.

    A GPU is examined before its first use, and again after an evaluation that did not end well. If
    it is not free within RELEASE_SECONDS, or has failed, it is withdrawn with a warning.

    The supervisor of an attempt that runs OVERRUN_SECONDS beyond its reservation is killed, and
    then its tree. An attempt that survives for as long again comes back as lost, and its device is
    withdrawn.
    """

    def __init__(
        self,
        slots: Devices,
        preload: Sequence[str] = (),
        *,
        host: str = "",
        lease: Lease | None = None,
    ) -> None:
        self.slots = slots
        self._lease = lease
        self._preload = tuple(preload)
        self._host = host
        self.warnings: tuple[str, ...] = ()
        self._free: list[Device] = [None] * slots.count if slots.kind == "cpu" else []
        gpus = [] if slots.kind == "cpu" else list(visible_gpus())[: slots.count]
        if slots.kind == "cuda" and len(gpus) < slots.count:
            raise EngineError(
                f"{slots.count} GPUs asked for, but this machine offers {len(gpus)}: ask for "
                "fewer, or check nvidia-smi and CUDA_VISIBLE_DEVICES"
            )
        self._unexamined = dict.fromkeys(gpus, time.monotonic() + RELEASE_SECONDS)
        self._running: dict[Path, _Running] = {}  # by directory
        self._is_cancelled = False
        self._server: ForkServer | None = None
        self._unread = b""
        self._probed_at = -math.inf
        self._pipes: tuple[int, ...] = ()  # read and write ends of notify and of the lifeline

    def __enter__(self) -> Self:
        self._pipes = (*os.pipe(), *os.pipe())
        try:
            self._live_server()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        graces = [one.attempt.limits.grace_seconds for one in self._running.values()]
        try:
            self.cancel()
            for seconds in (max(graces, default=0.0) + EXIT_SECONDS, EXIT_SECONDS):
                deadline = time.monotonic() + seconds
                while self._running and time.monotonic() < deadline:
                    self.wait(PROBE_SECONDS)
                for directory in self._running:  # a stopped supervisor: kill it, then its tree
                    signal_supervisor(directory, signal.SIGKILL)
        finally:
            self._close()  # this breaks the lifeline, so supervisors that remain end by themselves

    def free(self) -> int:
        gpus = visible_gpus() if self._unexamined else {}
        for device, deadline in list(self._unexamined.items()):
            why = gpus[device].foreign_use() if device in gpus else ""
            if why and time.monotonic() < deadline:
                continue
            del self._unexamined[device]
            if why:
                self._withdraw(device, why)
            else:
                self._free.append(device)
        if not (self._free or self._running or self._unexamined):
            raise EngineError(
                f"no device is left to evaluate on. {'; '.join(self.warnings)}. End what uses them "
                "(or choose other GPUs with CUDA_VISIBLE_DEVICES), then run the same command again"
            )
        if not (self._free or self._running):
            time.sleep(PROBE_SECONDS)
        return len(self._free)

    def _withdraw(self, device: Device, why: str) -> None:
        """Never use the device again: it failed, or an evaluation there cannot be ended."""
        self.warnings += (f"{device_name(device, self._host)} is not used any more: {why}",)

    def submit(self, attempt: Attempt) -> None:
        write_config(attempt)
        self.start(attempt)

    def start(self, attempt: Attempt) -> None:
        """Submit an attempt whose `config.json` is on disk."""
        server, device = self._live_server(), self._free.pop(0)
        self._running[attempt.directory] = _Running(attempt, device, server, time.monotonic())
        server.ask(attempt.directory, device)

    def cancel(self) -> None:
        """Ask every attempt to end, also those started later; `wait` returns their outcomes."""
        self._is_cancelled = True
        for directory in self._running:
            signal_supervisor(directory, signal.SIGTERM)

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        arrived: list[Outcome] = []
        while self._running and not arrived:
            left = deadline - time.monotonic()
            candidates = self._announced(min(PROBE_SECONDS, max(left, 0.0)))
            if time.monotonic() - self._probed_at >= PROBE_SECONDS:
                self._probed_at, candidates = time.monotonic(), list(self._running)
            arrived = [outcome for one in candidates if (outcome := self._ended(one))]
            if left <= 0:
                break
        return arrived

    def _announced(self, timeout_seconds: float) -> list[Path]:
        """Return attempts whose supervisors have announced their end on the pipe."""
        if not select.select([self._pipes[0]], [], [], timeout_seconds)[0]:
            return []
        *lines, self._unread = (self._unread + os.read(self._pipes[0], 1 << 16)).split(b"\n")
        announced = [path for line in lines if (path := Path(os.fsdecode(line))) in self._running]
        for directory in announced:
            self._running[directory].is_announced = True
        return announced

    def _ended(self, directory: Path) -> Outcome | None:
        """Return the outcome if the attempt has ended, and take its device back.

        The supervisor of one that is overdue is killed; later it is lost, and so is its device.
        """
        running = self._running[directory]
        attempt, device, seconds = running.attempt, running.device, running.seconds()
        may_still_start = not running.is_announced and running.server.is_alive()
        outcome = read_summary(attempt) or end_if_abandoned(
            attempt, seconds, may_still_start=may_still_start
        )
        overdue_seconds = seconds - attempt.limits.reserve_ms / 1000
        if outcome is not None:
            self._release(device, outcome)
        elif overdue_seconds > 2 * OVERRUN_SECONDS:
            cause = f"its supervisor has not ended it after {seconds:.0f} s"
            outcome = lost(attempt, cause, seconds, device_name(device, self._host))
            self._withdraw(device, f"processes of {attempt.attempt_id} cannot be ended there")
        elif overdue_seconds > OVERRUN_SECONDS:  # a stopped process dies too; then its tree
            signal_supervisor(directory, signal.SIGKILL)
        elif self._is_cancelled:
            signal_supervisor(directory, signal.SIGTERM)
        if outcome is not None:
            del self._running[directory]
        return outcome

    def _release(self, device: Device, outcome: Outcome) -> None:
        """Take the device back, unless the outcome shows that it has failed."""
        cause = cause_of(outcome.status, outcome.cause)
        if device is None or outcome.status is Status.OK:
            self._free.append(device)
        elif cause is not None and cause.device_failed:
            self._withdraw(device, f"{cause.what}: {outcome.cause}")
        else:
            self._unexamined[device] = time.monotonic() + RELEASE_SECONDS

    def _live_server(self) -> ForkServer:
        if self._server is None or not self._server.is_alive():
            if self._server is not None:
                self._server.close()
            _, notify, lifeline, _ = self._pipes
            lease = self._lease.descriptor if self._lease else None
            common = Supervision(notify, lifeline, lease, self.slots.threads, self._host)
            self._server = ForkServer(self._preload, common)
        return self._server

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for descriptor in self._pipes:
            os.close(descriptor)
        self._pipes = ()
