"""The devices of a machine: what it offers, which GPUs are free, and which processes use them.

All of it comes from the operating system and nvidia-smi; torch is not imported.
"""

import math
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from budgets.formatting import counted
from orchestrator.execution.api import EngineError, Slots, device_name

QUERY_SECONDS = 20.0  # longest wait for nvidia-smi
RELEASE_SECONDS = 5.0  # the driver frees a process's memory a moment after its end
POLL_SECONDS = 0.25
LEFTOVER_MIB = 1024
"""An idle GPU shows up to about 600 MiB, which the driver keeps for itself. The context and weights
of a process are more."""

Device = str | None
"""A GPU's id, or None for the CPU."""


@dataclass(frozen=True)
class Offer:
    """CPUs and GPUs of a machine or a cluster."""

    cpus: int
    cpu_name: str
    gpus: int = 0
    gpu_name: str = ""
    where: str = "this machine"

    def slots(
        self,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        count: int | None = None,
        threads: int | None = None,
    ) -> Slots:
        """Return slots on these devices: by default on every GPU, without GPUs on every CPU.

        Raises ValueError when there are fewer devices than asked for.
        """
        kind = ("cuda" if self.gpus else "cpu") if device == "auto" else device
        if (count is not None and count < 1) or (threads is not None and threads < 1):
            raise ValueError(f"expected at least one slot and thread, got {count} and {threads}")
        if kind == "cuda":
            count = count or self.gpus or 1
            self._check(count, self.gpus, "GPU")
            return Slots(count, "cuda", self.gpu_name, threads or max(1, self.cpus // count))
        threads = threads or 1
        count = count or max(1, self.cpus // threads)
        self._check(count * threads, self.cpus, "CPU")
        return Slots(count, "cpu", self.cpu_name, threads)

    def _check(self, wanted: int, offered: int, kind: str) -> None:
        if wanted > offered:
            raise ValueError(
                f"{counted(wanted, kind)} asked for, but {self.where} offers {offered}; "
                f"ask for fewer devices or threads"
            )


def local_offer(environment: Mapping[str, str] = os.environ) -> Offer:
    """Return what this process may use: affinity, CPU quota and CUDA_VISIBLE_DEVICES count."""
    gpus = visible_gpus(environment)
    names = sorted({gpu.name for gpu in gpus.values()})
    return Offer(usable_cpus(), cpu_name(), len(gpus), " + ".join(names))


def usable_cpus() -> int:
    """Return how many CPUs this process may use, by its affinity and its container's quota."""
    cpus = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cpus = min(cpus, max(1, math.floor(int(quota) / int(period))))
    return cpus


def cpu_name() -> str:
    """Return the processor's model, for people and to match calibrations."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver sees it now."""

    index: str
    uuid: str
    name: str
    used_mib: int  # 0 if the driver cannot say
    pids: tuple[int, ...] = ()  # processes with a CUDA context on it

    def foreign_use(self) -> str:
        """Return who else uses the GPU, for people; empty when it is free."""
        if self.pids:
            found = ", ".join(f"{pid} ({_process_name(pid)})" for pid in self.pids)
            return f"used by process {found}, {self.used_mib} MiB in all"
        if self.used_mib > LEFTOVER_MIB:
            return f"{self.used_mib} MiB are in use, although no process is on it"
        return ""


def visible_gpus(environment: Mapping[str, str] = os.environ) -> dict[str, Gpu]:
    """Return each GPU that this process may use, by its id for CUDA_VISIBLE_DEVICES, in order.

    Ids are taken from CUDA_VISIBLE_DEVICES if it is set, otherwise UUIDs: CUDA and nvidia-smi
    number the same GPUs differently. None if nvidia-smi is absent or fails.
    """
    users: dict[str, list[int]] = {}
    for uuid, pid, *_ in _nvidia_smi("--query-compute-apps=gpu_uuid,pid"):
        users.setdefault(uuid, []).extend([int(pid)] if pid.isdigit() else [])
    gpus = [
        Gpu(
            index=index,
            uuid=uuid,
            name=", ".join(name),
            used_mib=int(used) if used.isdigit() else 0,
            pids=tuple(users.get(uuid, ())),
        )
        for index, uuid, *name, used in _nvidia_smi("--query-gpu=index,uuid,name,memory.used")
    ]
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return {gpu.uuid: gpu for gpu in gpus}
    found: dict[str, Gpu] = {}
    for entry in filter(None, (part.strip() for part in chosen.split(","))):
        meant = [g for g in gpus if entry == g.index or g.uuid.startswith(entry)]
        if not meant:
            break  # CUDA too ignores everything after the first id that it does not know
        found[entry] = meant[0]
    return found


def _nvidia_smi(query: str) -> list[list[str]]:
    """Return the rows of nvidia-smi's answer; none if it is absent or fails."""
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[part.strip() for part in line.split(",")] for line in answer.stdout.splitlines()]
    return [row for row in rows if len(row) > 1]


def _process_name(pid: int) -> str:
    """Return the name of a process, which may be gone or in another pid namespace."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return "not visible from here"


def devices_for(slots: Slots) -> list[Device]:
    """Return the devices of these slots. Raises EngineError if there are fewer GPUs."""
    if slots.device == "cpu":
        return [None] * slots.count
    found = list(visible_gpus())
    if len(found) < slots.count:
        raise EngineError(
            f"{slots.count} GPUs asked for, but this machine offers {len(found)}; "
            f"ask for fewer, or check nvidia-smi and CUDA_VISIBLE_DEVICES"
        )
    return list(found[: slots.count])


class DevicePool:
    """Hands out devices that were seen to be free, and takes them back.

    A GPU is examined before its first use, and again after an evaluation that did not end well. If
    it is not free within RELEASE_SECONDS, it is withdrawn with a warning and the others are used.
    """

    def __init__(self, devices: Sequence[Device], host: str = "") -> None:
        self.warnings: tuple[str, ...] = ()
        self._host = host
        self._in_use = 0
        self._free: list[Device] = [device for device in devices if device is None]
        self._unexamined: dict[str, float] = {}  # GPUs, and until when they may become free
        for device in filter(None, devices):
            self._unexamined[device] = time.monotonic() + RELEASE_SECONDS

    def free(self) -> int:
        """Return how many devices `take` can hand out, after examining GPUs.

        With nothing in use it may wait a moment. Raises EngineError when every device has been
        withdrawn.
        """
        if self._unexamined:
            self._examine()
        if not (self._free or self._in_use):
            if not self._unexamined:
                raise EngineError(
                    f"no device is left to evaluate on. {'; '.join(self.warnings)}. End those "
                    "processes (or choose other GPUs with CUDA_VISIBLE_DEVICES), then run the same "
                    "command again"
                )
            time.sleep(POLL_SECONDS)
        return len(self._free)

    def take(self) -> Device:
        """Return a free device; the caller has seen that there is one."""
        self._in_use += 1
        return self._free.pop(0)

    def give_back(self, device: Device, *, ended_well: bool) -> None:
        """Take a device back whose evaluation has no process left."""
        self._in_use -= 1
        if device is None or ended_well:
            self._free.append(device)
        else:
            self._unexamined[device] = time.monotonic() + RELEASE_SECONDS

    def withdraw(self, device: Device, why: str) -> None:
        """Never hand the device out again: it failed, or an evaluation there cannot be ended."""
        self._in_use -= 1
        self._warn(device, why)

    def _examine(self) -> None:
        """Free or withdraw the unexamined GPUs, as far as their state is clear."""
        gpus = visible_gpus()
        for device, deadline in list(self._unexamined.items()):
            why = gpus[device].foreign_use() if device in gpus else ""
            if why and time.monotonic() < deadline:
                continue
            del self._unexamined[device]
            if why:
                self._warn(device, why)
            else:
                self._free.append(device)

    def _warn(self, device: Device, why: str) -> None:
        self.warnings += (f"{device_name(device, self._host)} is not used any more: {why}",)
