"""Whether a GPU is really free, as the driver's own program tells; silent where there is none."""

from dataclasses import dataclass

import psutil

from orchestrator.execution.devices import nvidia_smi

LEFTOVER_MIB = 1024
"""An idle GPU shows up to some 600 MiB that the driver keeps for itself; a dead process's context
and weights are more."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver sees it now."""

    index: str
    uuid: str
    used_mib: int
    pids: tuple[int, ...]  # with a CUDA context on it
    users: tuple[tuple[int, int | None], ...] = ()  # each pid's MiB, where the driver tells

    def is_meant_by(self, device: str) -> bool:
        """Whether that entry of CUDA_VISIBLE_DEVICES names it."""
        return device == self.index or (not device.isdigit() and self.uuid.startswith(device))

    def trouble(self) -> str:
        """What is on it that is nobody's here, in words; empty when it is free."""
        if self.pids:
            found = ", ".join(f"{pid} ({process_name(pid)})" for pid in self.pids)
            return f"used by process {found}, {self.used_mib} MiB in all"
        if self.used_mib > LEFTOVER_MIB:
            return f"{self.used_mib} MiB are in use, although no process is on it"
        return ""


def look_at_gpus() -> list[Gpu]:
    """Every GPU of this machine; none when nvidia-smi is absent, fails or cannot say."""
    memory = nvidia_smi("--query-gpu=index,uuid,memory.used")
    apps = nvidia_smi("--query-compute-apps=gpu_uuid,pid,used_memory")
    found = []
    for index, uuid, used in (row for row in memory if len(row) == 3):
        users = {
            int(row[1]): int(row[-1]) if len(row) == 3 and row[-1].isdigit() else None
            for row in apps
            if row[0] == uuid and row[1].isdigit()
        }
        if used.isdigit():
            ordered = sorted(users.items())
            found.append(Gpu(index, uuid, int(used), tuple(pid for pid, _ in ordered), (*ordered,)))
    return found


def process_name(pid: int) -> str:
    """What the process is called, or that it cannot be seen (another namespace, or gone)."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return "not visible from here"
