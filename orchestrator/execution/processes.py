"""Processes as Linux's /proc shows them: identity, descendants, memory, marks."""

import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from budgets.events import Owner
from objectives.process import MARK, libc
from orchestrator.execution.api import EngineError

MARK_LENGTH = 255
_PR_SET_CHILD_SUBREAPER = 36
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def boot_id() -> str:
    """Return a name of the boot and the pid namespace, within which a pid is unique.

    Raises EngineError on a system without /proc.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise EngineError(
            f"runs need Linux with /proc ({error}): use such a machine or a container of one"
        ) from None
    return f"{boot}:{os.readlink('/proc/self/ns/pid')}"


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except _GONE:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(pid: int, ticks: int) -> bool:
    """Return whether the process with that start time still runs, not another with its pid."""
    return start_ticks(pid) == ticks


def this_owner() -> Owner:
    """Return the calling process as the owner of attempts."""
    return Owner(boot_id=boot_id(), pid=os.getpid(), start_ticks=start_ticks(os.getpid()) or 0)


def owner_is_gone(owner: Owner) -> bool:
    """Return True if that process is certainly dead; False also if it ran on another machine."""
    return owner.boot_id == boot_id() and not is_alive(owner.pid, owner.start_ticks)


def descendants(root: int) -> list[int]:
    """Return the pids below `root`, zombies included, parents first."""
    found = [root]
    for pid in found:  # grows during the loop
        found += _children(pid)
    return found[1:]


def _children(pid: int) -> Iterator[int]:
    with suppress(*_GONE):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(*_GONE):
                for child in Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split():
                    yield int(child)


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the resident memory of these processes; shared pages count once for each."""
    total = 0
    for pid in pids:
        with suppress(*_GONE):
            pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE")
    return total


def send(pids: Iterable[int], signum: signal.Signals) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def marked(attempt_id: str) -> list[int]:
    """Return the pids of live processes that carry the attempt's mark, in any session or group."""
    wanted = f"{MARK}={attempt_id}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found


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
    if len(attempt_id) <= room:
        getenv = libc().getenv
        getenv.restype = ctypes.c_void_p
        if address := getenv(MARK.encode()):
            ctypes.memmove(address, attempt_id.encode().ljust(room, b"\0"), room)
    os.environ[MARK] = attempt_id


def adopt_orphans() -> None:
    """Make this process the parent of every orphan among its descendants."""
    libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prefer_for_oom_kill() -> None:
    """Ask the kernel to kill this process first when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
