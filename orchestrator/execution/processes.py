"""Processes as Linux's /proc shows them: identity, descendants, memory, marks."""

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from budgets.events import Owner
from objectives.process import MARK, libc

MARK_LENGTH = 255
_PR_SET_CHILD_SUBREAPER = 36
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_PAGE_BYTES, _TICKS_PER_SECOND = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def boot_id() -> str:
    """Return a name of the boot and the pid namespace, within which a pid is unique."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.readlink('/proc/self/ns/pid')}"


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks; None if it is gone or a zombie."""
    fields = _stat(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third, the state, on; none if it is gone."""
    with suppress(*_GONE):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return []


def this_owner() -> Owner:
    """Return the calling process as the owner of attempts."""
    return Owner(boot_id=boot_id(), pid=os.getpid(), start_ticks=start_ticks(os.getpid()) or 0)


def is_alive_here(owner: Owner) -> bool:
    """Return whether that process runs on this machine, not another one with its pid."""
    return owner.boot_id == boot_id() and start_ticks(owner.pid) == owner.start_ticks


def owner_is_gone(owner: Owner) -> bool:
    """Return True if that process is certainly dead; False also if it ran on another machine."""
    return owner.boot_id == boot_id() and not is_alive_here(owner)


def descendants(root: int) -> list[int]:
    """Return the pids below `root`, zombies included, parents first."""
    found = [root]
    for pid in found:  # grows during the loop
        with suppress(*_GONE):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(*_GONE):
                    children = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                    found += map(int, children.split())
    return found[1:]


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the resident memory of these processes; shared pages count once for each."""
    total = 0
    for pid in pids:
        with suppress(*_GONE):
            total += int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time of these processes and of their children that have ended."""
    return sum(sum(map(int, _stat(pid)[11:15])) for pid in pids) / _TICKS_PER_SECOND


def send(pids: Iterable[int], signum: signal.Signals) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def marked(attempt_id: str) -> list[int]:
    """Return the pids of live processes that carry the attempt's mark, in any session or group."""
    wanted, found = f"{MARK}={attempt_id}".encode(), []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        with suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return [pid for pid in found if pid != os.getpid()]


def kill_marked(attempt_id: str, timeout_seconds: float = 10.0) -> bool:
    """SIGKILL all processes with the attempt's mark until none is left; False if some remain."""
    deadline = time.monotonic() + timeout_seconds
    while pids := marked(attempt_id):
        if time.monotonic() > deadline:
            return False
        send(pids, signal.SIGKILL)
        time.sleep(0.01)
    return True


def mark_this_process(attempt_id: str) -> None:
    """Set the mark so that `marked` sees it in a process that was forked and never exec'd.

    /proc/PID/environ shows the memory that the process got at exec. A fork server is therefore
    started with a placeholder of MARK_LENGTH bytes, which is overwritten here in place.
    """
    room = len(os.environ.get(MARK, ""))
    getenv = libc().getenv
    getenv.restype = ctypes.c_void_p
    if len(attempt_id) <= room and (address := getenv(MARK.encode())):
        ctypes.memmove(address, attempt_id.encode().ljust(room, b"\0"), room)
    os.environ[MARK] = attempt_id


def adopt_orphans() -> None:
    """Make this process the parent of every orphan among its descendants."""
    libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
