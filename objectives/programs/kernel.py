"""What is asked of the kernel for a process and its program. Where it is not Linux, nothing."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from functools import cache

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1


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


@cache
def libc() -> ctypes.CDLL:
    """The C library; to be loaded before a fork whose child needs it."""
    return ctypes.CDLL(None, use_errno=True)
