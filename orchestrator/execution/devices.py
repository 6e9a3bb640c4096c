"""The engine of a run: which executor on which devices, and the versions of what computes.

Devices are found by asking the operating system and nvidia-smi; torch is not imported.
"""

import os
import platform
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from budgets.formatting import counted
from budgets.plan import Devices
from objectives.api import Objective
from orchestrator.execution.api import Executor

ExecutorKind = Literal["ray", "local", "inline"]
HOST_MEMORY_SHARE = 0.9  # of the machine's memory, for all evaluations together
QUERY_SECONDS = 20.0  # longest wait for nvidia-smi
LEFTOVER_MIB = 1024
"""An idle GPU shows up to about 600 MiB, which the driver keeps for itself. The context and weights
of a process are more."""

Kind = Literal["cpu", "cuda"]


def make_devices(count: int, kind: Kind = "cpu", name: str = "", threads: int = 1) -> Devices:
    """Return so many devices, which share the memory of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    share = int(memory * HOST_MEMORY_SHARE / count)
    return Devices(count=count, kind=kind, name=name, threads=threads, memory_bytes=share)


def resized(slots: Devices, count: int | None = None, threads: int | None = None) -> Devices:
    """Return devices of another count, or with other threads: fewer if they need more CPUs each."""
    count, threads = count or slots.count, threads or slots.threads
    if slots.kind == "cpu" and threads > slots.threads:
        count = max(1, count * slots.threads // threads)
    return make_devices(count, slots.kind, slots.name, threads)


def offer(cpus: int, gpus: int, gpu_name: str) -> dict[Kind, Devices]:
    """Return the devices of a machine or a cluster by their kind, those to be preferred first."""
    found: dict[Kind, Devices] = {}
    if gpus:
        found["cuda"] = make_devices(gpus, "cuda", gpu_name, max(1, cpus // gpus))
    if cpus:
        found["cpu"] = make_devices(cpus, "cpu", cpu_name())
    return found


def usable_cpus() -> int:
    """Return how many CPUs this process may use, by its affinity and its container's quota."""
    cpus = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cpus = min(cpus, max(1, int(quota) // int(period)))
    return cpus


@cache
def cpu_name() -> str:
    """Return the processor's model, for people and to match calibrations."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


class Gpu(NamedTuple):
    """One GPU as the driver sees it now."""

    number: str
    uuid: str
    name: str
    used: str  # MiB, or that the driver cannot say

    def foreign_use(self) -> str:
        """Return how much others use of the GPU, for people; empty when it is free."""
        is_used = self.used.isdigit() and int(self.used) > LEFTOVER_MIB
        return f"{self.used} MiB of it are in use" if is_used else ""


def visible_gpus() -> dict[str, Gpu]:
    """Return each GPU that this process may use, by its id for CUDA_VISIBLE_DEVICES, in order.

    Ids are taken from CUDA_VISIBLE_DEVICES if it is set, otherwise UUIDs: CUDA and nvidia-smi
    number the same GPUs differently. Empty if nvidia-smi is absent or fails.
    """
    query = "--query-gpu=index,uuid,name,memory.used"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=QUERY_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [[part.strip() for part in line.split(",")] for line in answer.splitlines()]
    gpus = [Gpu(*row) for row in rows if len(row) == len(Gpu._fields)]
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return {gpu.uuid: gpu for gpu in gpus}
    found: dict[str, Gpu] = {}
    for entry in map(str.strip, chosen.split(",")):
        gpu = next((g for g in gpus if entry == g.number or g.uuid.startswith(entry or "-")), None)
        if gpu is None:
            break  # CUDA too ignores everything after the first id that it does not know
        found[entry] = gpu
    return found


@dataclass(frozen=True)
class Engine:
    """Which executor runs the evaluations, and on which devices."""

    kind: ExecutorKind = "ray"
    address: str | None = None
    device: Kind | Literal["auto"] = "auto"
    workers: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.address is not None and self.kind != "ray":
            raise ValueError(f"--address joins a Ray cluster, --executor {self.kind} has none")
        if self.address and not re.fullmatch(r"local|auto|[^/]+:\d+", self.address):
            raise ValueError(f"--address: expected HOST:PORT, or auto, got {self.address!r}")

    def slots(self, offered: dict[Kind, Devices] | None = None) -> Devices:
        """Return the devices to use: by default every GPU, without GPUs every CPU.

        Raises ValueError if there are fewer devices than asked for.
        """
        offered = self.offer() if offered is None else offered
        kind: Kind = next(iter(offered), "cpu") if self.device == "auto" else self.device
        own, cpus = offered.get(kind), offered.get("cpu")
        room = own.count if own else 0
        each, unit = (self.threads or 1, "CPU") if kind == "cpu" else (1, "GPU")  # of a slot
        count = self.workers or max(1, room // each)
        if own is None or count * each > room:
            where = "this machine" if self.address is None else "the Ray cluster"
            raise ValueError(
                f"{counted(count * each, unit)} asked for, but {where} offers {room}; "
                f"ask for fewer devices or threads"
            )
        share = 1 if kind == "cpu" or cpus is None else max(1, cpus.count // count)
        return make_devices(count, kind, own.name, self.threads or share)

    def offer(self) -> dict[Kind, Devices]:
        """Return the devices of the cluster at `address`, or what this process may use here.

        Its affinity, CPU quota and CUDA_VISIBLE_DEVICES count. Raises EngineError if the cluster
        cannot be joined.
        """
        if self.kind != "ray" or self.address is None:
            gpus = visible_gpus()
            names = sorted({gpu.name for gpu in gpus.values()})
            return offer(usable_cpus(), len(gpus), " + ".join(names))
        from orchestrator.execution.ray import cluster_offer

        return cluster_offer(self.address)

    def executor(self, slots: Devices, objective: Objective) -> Executor:
        """Return the executor; enter it to start it."""
        from orchestrator.execution import inline, local, ray

        if self.kind == "inline":
            return inline.InlineExecutor(slots)
        if self.kind == "local":
            return local.LocalExecutor(slots, objective.preload)
        return ray.RayExecutor(slots, objective.preload, self.address)


@cache
def versions() -> dict[str, str]:
    """Return the versions of this program and of what decides the last bits of scores."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    found = {
        "orchestrator": "unknown",
        "blas": f"{blas['name']} {blas['version']}",
        "python": platform.python_version(),
        "processor": cpu_name(),
    }
    for package in ("cma", "numpy", "ray", "torch", "cmaes-orchestrator"):
        with suppress(metadata.PackageNotFoundError):
            found[package.removeprefix("cmaes-")] = metadata.version(package)
    return found
