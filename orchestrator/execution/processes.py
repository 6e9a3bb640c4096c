"""Processes as Linux's /proc tells of them: identity, descendants, memory, marks."""

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
    """Names the boot and the pid namespace within which a pid means something.

    Raises EngineError on a system without them.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise EngineError(
            f"runs need Linux with /proc ({error}): use such a machine or a container of one"
        ) from None
    return f"{boot}:{os.readlink('/proc/self/ns/pid')}"


def start_ticks(pid: int) -> int | None:
    """When the process started, in the system's own unit; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except _GONE:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(pid: int, ticks: int) -> bool:
    """True if the very process with that start still runs (not another that got its pid)."""
    return start_ticks(pid) == ticks


def this_owner() -> Owner:
    """The calling process, as an attempt remembers its orchestrator."""
    return Owner(boot_id=boot_id(), pid=os.getpid(), start_ticks=start_ticks(os.getpid()) or 0)


def owner_is_gone(owner: Owner) -> bool:
    """True if that process is certainly dead; False also when it lived where we cannot look."""
    return owner.boot_id == boot_id() and not is_alive(owner.pid, owner.start_ticks)


def descendants(root: int) -> list[int]:
    """Pids below `root`, zombies among them, parents first."""
    found = [root]
    for pid in found:  # grows meanwhile
        found += _children(pid)
    return found[1:]


def _children(pid: int) -> Iterator[int]:
    with suppress(*_GONE):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(*_GONE):
                for child in Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split():
                    yield int(child)


def resident_bytes(pids: Iterable[int]) -> int:
    """Resident memory of these processes together; pages they share count once for each."""
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
    """Pids of live processes that carry the attempt's mark, wherever they have fled to."""
    wanted = f"{MARK}={attempt_id}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found


def kill_marked(attempt_id: str, timeout_seconds: float = 10.0) -> bool:
    """SIGKILL whatever carries the attempt's mark, until nothing does. False if some remained."""
    deadline = time.monotonic() + timeout_seconds
    while pids := marked(attempt_id):
        if time.monotonic() > deadline:
            return False
        send(pids, signal.SIGKILL)
        time.sleep(0.01)
    return True


def mark_this_process(attempt_id: str) -> None:
    """Carry the mark, visibly for `marked` although this process was forked and never exec'd.

    /proc/PID/environ shows the memory the process got at exec. A fork server is therefore
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
    """Become the parent of every orphan among one's descendants."""
    libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def volunteer_for_the_oom_killer() -> None:
    """Ask the kernel to take this process first when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
