"""The executor for this machine: each evaluation in a process tree of its own."""

import math
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from budgets.events import Status
from budgets.failures import cause_of
from orchestrator.execution.api import (
    Attempt,
    EngineError,
    Outcome,
    Slots,
    device_name,
    usable,
)
from orchestrator.execution.devices import RELEASE_SECONDS, Device, DevicePool, visible_gpus
from orchestrator.execution.files import (
    end_if_abandoned,
    read_summary,
    signal_supervisor,
    write_config,
)
from orchestrator.execution.forkserver import ForkServer
from orchestrator.execution.supervisor import Lease, Supervision
from orchestrator.execution.trainer import MAIN

PROBE_SECONDS = 0.25  # how often attempts in flight are looked at without being announced
START_SECONDS = 60.0  # for a supervisor to appear under a live fork server
EXIT_SECONDS = 15.0  # for everything to be gone at the end, beyond the attempts' own grace
OVERRUN_SECONDS = 10.0  # beyond its reservation, until an attempt is taken to be beyond ending


@dataclass
class _Flight:
    attempt: Attempt
    device: Device
    server: ForkServer
    submitted_at: float
    is_cancelled: bool = False
    is_announced: bool = False  # its supervisor has done what it will
    is_killed: bool = False  # its supervisor, which did not end it in time

    def seconds(self) -> float:
        return time.monotonic() - self.submitted_at

    def may_still_start(self) -> bool:
        is_due = not self.is_announced and self.seconds() < START_SECONDS
        return is_due and self.server.is_alive()


class LocalExecutor:
    """Each evaluation in its own process tree under a supervisor, on the devices of this machine.

    `preload` are modules the fork server imports once; `entry` is what runs for an attempt (see
    `trainer.MAIN`). GPUs are those visible to this process unless `gpu_ids` names them; on a
    cluster their names need the `host`. With `lease_seconds`, what runs is ended unless
    `lease.extend` is called in time. The supervisor of an attempt that is not over
    `overrun_seconds` after its reservation is killed, and its tree with it. An attempt that
    outlives that as long again is given back as lost, and its device is withdrawn; so is a device
    that has failed.
    """

    def __init__(  # noqa: PLR0913 - how to evaluate, and where
        self,
        slots: Slots,
        preload: Sequence[str] = (),
        *,
        entry: str = MAIN,
        gpu_ids: Sequence[str] | None = None,
        host: str = "",
        lease_seconds: float | None = None,
        release_seconds: float = RELEASE_SECONDS,
        overrun_seconds: float = OVERRUN_SECONDS,
    ) -> None:
        self.slots = slots
        self.lease = Lease(lease_seconds) if lease_seconds is not None else None
        self._preload = tuple(preload)
        self._entry = entry
        self._host = host
        self._pool = DevicePool(_devices(slots, gpu_ids), host, release_seconds)
        self._overrun_seconds = overrun_seconds
        self._running: dict[Path, _Flight] = {}  # by directory
        self._server: ForkServer | None = None
        self._unread = b""
        self._probed_at = -math.inf
        self._pipes: tuple[int, int, int, int] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._pool.warnings

    def __enter__(self) -> Self:
        self._pipes = (*os.pipe(), *os.pipe())
        try:
            self._live_server()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        longest = max((f.attempt.limits.grace_seconds for f in self._running.values()), default=0)
        try:
            self.cancel()
            self._drain(longest + EXIT_SECONDS)
            for directory in self._running:  # stopped, perhaps: its tree is killed after it
                signal_supervisor(directory, signal.SIGKILL)
            self._drain(EXIT_SECONDS)
        finally:
            self._close()  # the lifeline breaks: what still runs ends by itself

    def _drain(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._running and time.monotonic() < deadline:
            self.wait(PROBE_SECONDS)

    def free(self, avoid: str = "") -> int:
        return usable(*self.devices(), avoid)

    def devices(self) -> tuple[list[str], list[str]]:
        """The names of devices that are free, and of those in use."""
        free = [device_name(device, self._host) for device in self._pool.free()]
        return free, [device_name(device, self._host) for device in self._pool.in_use]

    def submit(self, attempt: Attempt) -> None:
        if not self._pool.free():
            raise EngineError(f"all {self.slots.count} slots are in use")
        write_config(attempt)
        self.start(attempt)

    def start(self, attempt: Attempt) -> None:
        """Submit an attempt whose `config.json` is on disk."""
        server, device = self._live_server(), self._pool.take(attempt.avoid)
        self._running[attempt.directory] = _Flight(attempt, device, server, time.monotonic())
        server.ask(attempt.directory, device)

    def cancel(self) -> None:
        """Ask every attempt in flight to end; their outcomes come through `wait`."""
        for directory, flight in self._running.items():
            flight.is_cancelled = True
            signal_supervisor(directory, signal.SIGTERM)

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + timeout_seconds
        arrived: list[Outcome] = []
        while self._running and not arrived:
            left = deadline - time.monotonic()
            candidates = self._announced(min(PROBE_SECONDS, max(left, 0.0)))
            if time.monotonic() - self._probed_at >= PROBE_SECONDS:
                self._probed_at, candidates = time.monotonic(), list(self._running)
            arrived = [found for one in candidates if (found := self._ended(one)) is not None]
            if left <= 0:
                break
        return arrived

    def _announced(self, timeout_seconds: float) -> list[Path]:
        """Attempts whose supervisors say on the pipe that they have ended."""
        assert self._pipes is not None, "submit and wait need the executor entered"
        if not select.select([self._pipes[0]], [], [], timeout_seconds)[0]:
            return []
        *lines, self._unread = (self._unread + os.read(self._pipes[0], 1 << 16)).split(b"\n")
        announced = [one for line in lines if (one := Path(os.fsdecode(line))) in self._running]
        for directory in announced:
            self._running[directory].is_announced = True
        return announced

    def _ended(self, directory: Path) -> Outcome | None:
        flight = self._running[directory]
        name, device = flight.attempt.attempt_id, flight.device
        outcome = read_summary(directory, name) or end_if_abandoned(
            directory, name, flight.seconds(), may_still_start=flight.may_still_start()
        )
        if outcome is not None:
            self._release(device, outcome)
        elif (outcome := self._beyond_ending(flight)) is not None:
            self._pool.withdraw(device, f"processes of {name} cannot be ended there")
        if outcome is not None:
            del self._running[directory]
        elif flight.is_cancelled:
            signal_supervisor(directory, signal.SIGTERM)
        return outcome

    def _release(self, device: Device, outcome: Outcome) -> None:
        """Take the device back, unless what ran there says that it fails."""
        cause = cause_of(outcome.status, outcome.cause)
        if device is not None and cause is not None and cause.device_failed:
            self._pool.withdraw(device, f"{cause.what}: {outcome.cause}")
        else:
            self._pool.give_back(device, ended_well=outcome.status is Status.OK)

    def _beyond_ending(self, flight: _Flight) -> Outcome | None:
        """The loss of an attempt that is not over long after its reservation; None before."""
        attempt, seconds = flight.attempt, flight.seconds()
        overdue_seconds = seconds - attempt.limits.reserve_ms / 1000
        if overdue_seconds > self._overrun_seconds and not flight.is_killed:
            flight.is_killed = True  # a stopped one dies of it too; its tree is ended after that
            signal_supervisor(attempt.directory, signal.SIGKILL)
        if overdue_seconds < 2 * self._overrun_seconds:
            return None
        return Outcome(
            attempt_id=attempt.attempt_id,
            status=Status.LOST,
            cause=f"its supervisor has not ended it after {seconds:.0f} s",
            seconds=seconds,
            device=device_name(flight.device, self._host),
        )

    def _live_server(self) -> ForkServer:
        assert self._pipes is not None, "submit and wait need the executor entered"
        if self._server is None or not self._server.is_alive():
            if self._server is not None:
                self._server.close()
            _, notify, lifeline, _ = self._pipes
            lease = self.lease.descriptor if self.lease else None
            common = Supervision(
                notify, lifeline, lease, self._entry, self.slots.threads, self._host
            )
            self._server = ForkServer(self._preload, common)
        return self._server

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for descriptor in self._pipes or ():
            os.close(descriptor)
        self._pipes = None
        if self.lease is not None:
            self.lease.close()


def _devices(slots: Slots, gpu_ids: Sequence[str] | None) -> list[Device]:
    if slots.device == "cpu":
        return [None] * slots.count
    found = list(gpu_ids) if gpu_ids is not None else [gpu for gpu, _ in visible_gpus()]
    if len(found) < slots.count:
        raise EngineError(
            f"{slots.count} GPUs asked for, but this machine offers {len(found)}; "
            f"ask for fewer, or check nvidia-smi and CUDA_VISIBLE_DEVICES"
        )
    return list(found[: slots.count])
