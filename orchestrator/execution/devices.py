"""The devices of a machine: what it offers, which GPUs are really free, and who uses them now.

Found out from the operating system and nvidia-smi, without importing torch.
"""

import math
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from budgets.formatting import counted
from orchestrator.execution.api import EngineError, Slots, device_name

QUERY_SECONDS = 20.0  # for an answer about the GPUs
RELEASE_SECONDS = 5.0  # a driver frees a dead process's memory a moment after its end
POLL_SECONDS = 0.25
LEFTOVER_MIB = 1024
"""An idle GPU shows up to some 600 MiB that the driver keeps for itself; a dead process's context
and weights are more."""

Device = str | None
"""A GPU's id, or None for the CPU."""


@dataclass(frozen=True)
class Offer:
    """CPUs and GPUs of a machine or a cluster; `slots` chooses from them."""

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
        """Slots on these devices: every GPU if there are any, otherwise every CPU.

        Raises ValueError when more is asked for than there is.
        """
        kind = ("cuda" if self.gpus else "cpu") if device == "auto" else device
        if (count is not None and count < 1) or (threads is not None and threads < 1):
            raise ValueError(f"expected at least one slot and thread, got {count} and {threads}")
        if kind == "cuda":
            count = count or self.gpus or 1
            self._suffices(count, self.gpus, "GPU")
            return Slots(count, "cuda", self.gpu_name, threads or max(1, self.cpus // count))
        threads = threads or 1
        count = count or max(1, self.cpus // threads)
        self._suffices(count * threads, self.cpus, "CPU")
        return Slots(count, "cpu", self.cpu_name, threads)

    def _suffices(self, wanted: int, there: int, kind: str) -> None:
        if wanted > there:
            raise ValueError(
                f"{counted(wanted, kind)} asked for, but {self.where} offers {there}; "
                f"ask for fewer devices or threads"
            )


def local_offer(environment: Mapping[str, str] = os.environ) -> Offer:
    """What this machine offers to this process: affinity, CPU quota, CUDA_VISIBLE_DEVICES."""
    found = visible_gpus(environment)
    names = sorted({name for _, name in found})
    return Offer(usable_cpus(), cpu_name(), len(found), " + ".join(names))


def usable_cpus() -> int:
    """CPUs this process may use: its affinity, and the quota of a container."""
    everywhere = os.cpu_count() or 1
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else everywhere
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cpus = min(cpus, max(1, math.floor(int(quota) / int(period))))
    return cpus


def cpu_name() -> str:
    """The processor's model, for people and for matching calibrations."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """(id for CUDA_VISIBLE_DEVICES, name) of each GPU this process may use, in order.

    Ids are those of CUDA_VISIBLE_DEVICES where it is set, otherwise UUIDs, because CUDA and
    nvidia-smi number the same GPUs differently.
    """
    gpus = _gpus({})
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [(gpu.uuid, gpu.name) for gpu in gpus]
    found = []
    for entry in (part.strip() for part in chosen.split(",")):
        name = next((gpu.name for gpu in gpus if entry and gpu.is_meant_by(entry)), None)
        if name is None:
            break  # CUDA, too, ignores everything after the first id it does not know
        found.append((entry, name))
    return found


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver sees it now."""

    index: str
    uuid: str
    name: str
    used_mib: int  # 0 where the driver cannot say
    pids: tuple[str, ...] = ()  # with a CUDA context on it

    def is_meant_by(self, device: str) -> bool:
        """Whether that entry of CUDA_VISIBLE_DEVICES names it."""
        return device == self.index or (not device.isdigit() and self.uuid.startswith(device))

    def trouble(self) -> str:
        """What foreign use there is of it, for people; empty when it is free."""
        if self.pids:
            found = ", ".join(f"{pid} ({_process_name(pid)})" for pid in self.pids)
            return f"used by process {found}, {self.used_mib} MiB in all"
        if self.used_mib > LEFTOVER_MIB:
            return f"{self.used_mib} MiB are in use, although no process is on it"
        return ""


def look_at_gpus() -> list[Gpu]:
    """Every GPU of this machine and who uses it; none when nvidia-smi is absent or fails."""
    users: dict[str, tuple[str, ...]] = {}
    for uuid, pid, *_ in nvidia_smi("--query-compute-apps=gpu_uuid,pid"):
        if pid.isdigit():
            users[uuid] = (*users.get(uuid, ()), pid)
    return _gpus(users)


def _gpus(users: Mapping[str, tuple[str, ...]]) -> list[Gpu]:
    return [
        Gpu(index, uuid, ", ".join(name), int(used) if used.isdigit() else 0, users.get(uuid, ()))
        for index, uuid, *name, used in nvidia_smi("--query-gpu=index,uuid,name,memory.used")
        if name
    ]


def nvidia_smi(query: str) -> list[list[str]]:
    """The answer by rows of two cells or more; none if the program is absent or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = ([part.strip() for part in line.split(",")] for line in answer.stdout.splitlines())
    return [row for row in rows if len(row) > 1]


def _process_name(pid: str) -> str:
    """What the process is called, or that it cannot be seen (another namespace, or gone)."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "not visible from here"


class DevicePool:
    """Hands out devices that were seen to be free, and takes them back.

    A GPU is looked at before its first use, and again when what ran on it did not end well. One
    that is not free within `release_seconds` is withdrawn with a warning, and the others are used.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        host: str = "",
        release_seconds: float = RELEASE_SECONDS,
        look: Callable[[], list[Gpu]] = look_at_gpus,
    ) -> None:
        self.warnings: tuple[str, ...] = ()
        self.in_use: list[Device] = []
        self._host = host
        self._release_seconds = release_seconds
        self._look = look
        self._free: list[Device] = [device for device in devices if device is None]
        # GPUs to be looked at, and until when they may become free.
        self._doubtful: dict[str, float] = {}
        for device in devices:
            self._doubt(device)

    def free(self) -> list[Device]:
        """The devices that `take` can give now, after a look at the doubtful ones.

        It waits a moment where there is nothing else to do. Raises EngineError when all have been
        withdrawn.
        """
        self._examine()
        if self._doubtful and not self._free and not self.in_use:
            time.sleep(POLL_SECONDS)
            self._examine()
        if not (self._free or self.in_use or self._doubtful):
            raise EngineError(
                f"no device is left to evaluate on. {'; '.join(self.warnings)}. End what is there "
                f"(or choose other GPUs with CUDA_VISIBLE_DEVICES), then run the same command again"
            )
        return self._free

    def take(self, avoid: str = "") -> Device:
        """A free device, another one if there is; the caller has seen that one is free."""
        others = [one for one in self._free if device_name(one, self._host) != avoid]
        device = (others or self._free)[0]
        self._free.remove(device)
        self.in_use.append(device)
        return device

    def give_back(self, device: Device, *, ended_well: bool) -> None:
        """What ran on it is gone."""
        self.in_use.remove(device)
        if device is None or ended_well:
            self._free.append(device)
        else:
            self._doubt(device)

    def withdraw(self, device: Device, why: str) -> None:
        """What ran on it cannot be ended, or has shown that it fails: no more work there."""
        self.in_use.remove(device)
        self._warn(device, why)

    def _examine(self) -> None:
        """Sort the doubtful devices into free and withdrawn, as far as that is clear by now."""
        if not self._doubtful:
            return
        gpus = self._look()
        for device, deadline in list(self._doubtful.items()):
            why = next((gpu.trouble() for gpu in gpus if gpu.is_meant_by(device)), "")
            if why and time.monotonic() < deadline:
                continue
            del self._doubtful[device]
            if why:
                self._warn(device, why)
            else:
                self._free.append(device)

    def _doubt(self, device: Device) -> None:
        if device is not None:
            self._doubtful[device] = time.monotonic() + self._release_seconds

    def _warn(self, device: Device, why: str) -> None:
        self.warnings += (f"{device_name(device, self._host)} is not used any more: {why}",)
