"""What is asked of the kernel for a process and its program. Where it is not Linux, nothing."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
CGROUPS = Path("/sys/fs/cgroup")
_MEMORY_V1 = ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")


def die_with_parent(parent: int) -> None:
    """Get SIGKILL when the parent dies; exit at once if it is dead already."""
    if LINUX:
        libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory on this machine."""
    with suppress(OSError), open("/proc/vmstat", "rb") as file:
        for line in file:
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def memory_bytes(cgroups: Path = CGROUPS) -> tuple[int, int]:
    """(total, available) for this process: the machine's, or less in a container."""
    found = psutil.virtual_memory()
    total, available = int(found.total), int(found.available)
    for limit, used in (("memory.max", "memory.current"), _MEMORY_V1):
        with suppress(OSError, ValueError):
            most = int((cgroups / limit).read_text())
            if most < total:
                left = most - int((cgroups / used).read_text())
                return most, min(available, max(left, 0))
    return total, available


@cache
def libc() -> ctypes.CDLL:
    """The C library; to be loaded before a fork whose child needs it."""
    return ctypes.CDLL(None, use_errno=True)
