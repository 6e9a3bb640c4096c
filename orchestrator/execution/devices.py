"""What a machine offers to run evaluations on, found out without importing torch."""

import math
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from budgets.formatting import counted
from orchestrator.execution.evaluate import Slots

QUERY_SECONDS = 20.0  # for an answer about the GPUs


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
    rows = _named_gpus()
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [(uuid, name) for _, uuid, name in rows]
    found = []
    for entry in (part.strip() for part in chosen.split(",")):
        name = next((row[2] for row in rows if entry and _means(entry, row)), None)
        if name is None:
            break  # CUDA, too, ignores everything after the first id it does not know
        found.append((entry, name))
    return found


def _means(entry: str, row: tuple[str, str, str]) -> bool:
    index, uuid, _ = row
    return entry == index or (not entry.isdigit() and uuid.startswith(entry))


def _named_gpus() -> list[tuple[str, str, str]]:
    """(index, uuid, name) of each GPU; none if the driver's program is absent or fails."""
    rows = nvidia_smi("--query-gpu=index,uuid,name")
    return [(row[0], row[1], ", ".join(row[2:])) for row in rows if len(row) > 2]


def nvidia_smi(query: str) -> list[list[str]]:
    """The answer by rows; none if the program is absent or fails."""
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
