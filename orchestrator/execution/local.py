"""The executor for this machine: each evaluation runs in a process tree of its own."""

import json
import math
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from budgets.events import Status
from budgets.failure_causes import cause_of
from budgets.plan import Devices
from objectives.process import MARK
from orchestrator.execution import api, processes
from orchestrator.execution.api import Attempt, EngineError, Outcome
from orchestrator.execution.devices import visible_gpus
from orchestrator.execution.supervisor import CANCEL

PROBE_SECONDS = 0.25  # between two looks at attempts that are overdue, or at GPUs
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

    def __init__(self, preload: Sequence[str], threads: int) -> None:
        package, modules = str(Path(__file__).parents[2]), ",".join(preload)
        self._command = [sys.executable, "-P", "-c", START, package, modules]
        self._environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "OPENBLAS_NUM_THREADS": "1",  # a process with threads must not be forked
            "PYTHONUNBUFFERED": "1",
            MARK: "-" * processes.MARK_LENGTH,  # room for it
        }
        self._launch()

    def _launch(self) -> None:
        self._requests, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with tempfile.TemporaryFile() as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C in the terminal does not reach it
                env=self._environment,
            )
            theirs.close()  # so that its end is seen
            self._requests.settimeout(READY_SECONDS)
            is_ready = b""
            with suppress(TimeoutError):
                is_ready = self._requests.recv(8)
            if not is_ready:
                self.close()
                said = os.pread(output.fileno(), 1 << 20, 0).decode(errors="replace").strip()
                raise EngineError(f"the fork server did not start:\n{said[-2000:]}")

    def start(self, **request: Any) -> socket.socket:
        """Request a supervisor; return the line to it, which closes when it ends or never starts.

        See `supervisor.supervise` for the request, and `Watch.check_wanted` for the line.
        """
        line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            message = [json.dumps(request, default=str).encode()], [theirs.fileno()]
            try:
                socket.send_fds(self._requests, *message)
            except ConnectionError:  # the server has died
                self.close()
                self._launch()
                socket.send_fds(self._requests, *message)
        return line

    def close(self) -> None:
        """End the server. Its supervisors live on."""
        self._requests.close()
        self._process.kill()
        self._process.wait()


@dataclass(eq=False)
class _Running:
    """An attempt that was started and has not come back."""

    attempt: Attempt
    device: Device
    line: socket.socket  # to its supervisor
    started_at: float

    def seconds(self) -> float:
        return time.monotonic() - self.started_at

    def overdue_seconds(self) -> float:
        return self.seconds() - self.attempt.limits.reserve_ms / 1000


class LocalExecutor:
    """Runs each evaluation under a supervisor, on the devices of this machine.

    `preload` are modules that the fork server imports once; `host` is part of the names of devices
    on a cluster. At the `deadline` (monotonic clock) evaluations are ended, unless `extend` has
    moved it.

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
        deadline: float = math.inf,
    ) -> None:
        self.slots = slots
        self._deadline = deadline
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
        self._lines = selectors.DefaultSelector()
        self._running: list[_Running] = []

    def __enter__(self) -> Self:
        self._server = ForkServer(self._preload, self.slots.threads)
        return self

    def __exit__(self, *_: object) -> None:
        graces = [one.attempt.limits.grace_seconds for one in self._running]
        try:
            self.cancel()
            for seconds in (max(graces, default=0.0) + EXIT_SECONDS, EXIT_SECONDS):
                deadline = time.monotonic() + seconds
                while self._running and time.monotonic() < deadline:
                    self.wait(PROBE_SECONDS)
                for one in self._running:  # its supervisor is stopped: kill it, then its tree
                    api.kill_supervisor(one.attempt.directory)
        finally:
            for one in self._running:  # supervisors that remain end by themselves
                one.line.close()
            self._lines.close()
            self._server.close()

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

    def submit(self, attempt: Attempt) -> None:
        device = self._free.pop(0)
        common = {"threads": self.slots.threads, "host": self._host, "deadline": self._deadline}
        line = self._server.start(directory=attempt.directory, gpu_id=device, **common)
        self._running.append(_Running(attempt, device, line, time.monotonic()))
        self._lines.register(line, selectors.EVENT_READ, self._running[-1])

    def cancel(self) -> None:
        """Ask every attempt to end; `wait` returns their outcomes."""
        self._tell(self._running, CANCEL)

    def extend(self, deadline: float, wanted: Container[str]) -> None:
        """Let new attempts, and those whose ids are `wanted`, go on until the deadline.

        It may be up to a second earlier: smaller steps are not sent.
        """
        if deadline >= self._deadline + 1.0:
            self._deadline = deadline
            found = [one for one in self._running if one.attempt.attempt_id in wanted]
            self._tell(found, repr(deadline).encode())

    def _tell(self, running: list[_Running], what: bytes) -> None:
        for one in running:
            with suppress(OSError):  # it has ended, or is stopped and has not read what was sent
                one.line.send(what, socket.MSG_DONTWAIT)

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        arrived: list[Outcome] = []
        while self._running and not arrived:
            left = max(0.0, deadline - time.monotonic())
            for key, _ in self._lines.select(min(PROBE_SECONDS, left)):
                one = key.data
                if outcome := api.end_if_abandoned(one.attempt, one.seconds()):
                    self._release(one.device, outcome)
                    arrived.append(self._back(one, outcome))
            overdue = [one for one in self._running if one.overdue_seconds() > OVERRUN_SECONDS]
            arrived += [outcome for one in overdue if (outcome := self._end_overdue(one))]
            if not left:
                break
        return arrived

    def _back(self, one: _Running, outcome: Outcome) -> Outcome:
        self._running.remove(one)
        self._lines.unregister(one.line)
        one.line.close()
        return outcome

    def _end_overdue(self, one: _Running) -> Outcome | None:
        """Kill its supervisor, then its tree; later it is lost, and so is its device."""
        attempt = one.attempt
        if one.overdue_seconds() <= 2 * OVERRUN_SECONDS:
            api.kill_supervisor(attempt.directory)
            return None
        self._withdraw(one.device, f"processes of {attempt.attempt_id} cannot be ended there")
        cause = f"its supervisor has not ended it after {one.seconds():.0f} s"
        return self._back(one, api.lost(attempt, cause, one.seconds()))

    def _release(self, device: Device, outcome: Outcome) -> None:
        """Take the device back, unless the outcome shows that it has failed."""
        if device is None or outcome.status is Status.OK:
            self._free.append(device)
        elif (cause := cause_of(outcome.status, outcome.cause)) and cause.device_failed:
            self._withdraw(device, f"{cause.what}: {outcome.cause}")
        else:
            self._unexamined[device] = time.monotonic() + RELEASE_SECONDS

    def _withdraw(self, device: Device, why: str) -> None:
        """Never use the device again: it failed, or an evaluation there cannot be ended."""
        self.warnings += (f"{api.device_name(device, self._host)} is not used any more: {why}",)
