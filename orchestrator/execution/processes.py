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

MARK_LENGTH = 255
_PR_SET_CHILD_SUBREAPER = 36
_MADV_COLLAPSE, _HUGE = 25, 2 << 20
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def boot_id() -> str:
    """Names the boot and the pid namespace within which a pid means something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
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
    found, ahead = list[int](), [root]
    while ahead:
        children = list(_children(ahead.pop(0)))
        found += children
        ahead += children
    return found


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
            total += int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE")


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


def gather_into_huge_pages() -> None:
    """Make forks of this process cheaper: fewer, larger pages to copy entries of (Linux >= 6.1).

    With torch imported, a fork took 1.4 instead of 4.5 ms and its exit 3 instead of 9 ms.
    """
    madvise = libc().madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode, *rest = line.split()
        if mode == "rw-p" and (len(rest) < 4 or rest[3] == "[heap]"):  # memory of no file
            first, last = (int(address, 16) for address in span.split("-"))
            first, last = -(-first // _HUGE) * _HUGE, last // _HUGE * _HUGE
            if first < last:  # a refusal costs nothing but speed
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_COLLAPSE)
