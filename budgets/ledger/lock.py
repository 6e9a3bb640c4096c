"""Who may append to a ledger: one process at a time, by `flock` on a file that is never removed.

The kernel gives the lock back when its holder dies, however that happens. It is never taken away
from anybody, however old it looks.
"""

import fcntl
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from budgets.formatting import command

LOCK = "ledger.lock"


class LedgerLockedError(Exception):
    """Another process is writing to this ledger."""


def take_lock(directory: Path) -> int:
    """A descriptor that holds the directory's lock until it is closed.

    Raises LedgerLockedError, naming who has it; OSError when the directory cannot be written to.
    """
    path = directory / LOCK
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(lock, 200, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise LedgerLockedError(_held(directory, owner)) from error
    since = datetime.now(UTC).isoformat(timespec="seconds")
    owner = f"host {os.uname().nodename}, pid {os.getpid()}, since {since}"
    with suppress(OSError):  # the text is for people; a full disk takes none
        os.ftruncate(lock, 0)
        os.pwrite(lock, owner.encode(), 0)
    return lock


def give_back(lock: int) -> None:
    """Release it, also for children forked with it. The descriptor is still to be closed."""
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_UN)


def _held(directory: Path, owner: str) -> str:
    text = f"another orchestrator is running in {directory} ({owner}). "
    holders = processes_with(directory / LOCK)
    if holders and f"pid {holders[0]}," not in owner:  # it died, a child it forked lives on
        pids = ", ".join(map(str, holders))
        text += f"The lock is held by process {pids} on this machine, which it has started. "
    return text + f"Look at it with: {command('status', str(directory))}"


def processes_with(path: Path) -> list[int]:
    """Pids of this machine's other processes that have the file open, as far as /proc tells us."""
    pids: list[int] = []
    with suppress(OSError):
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return sorted(pid for pid in pids if pid != os.getpid() and has_open(pid, path))


def has_open(pid: int, path: Path) -> bool | None:
    """Whether that process has the file open; None where we may not look."""
    try:
        wanted = path.stat()
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return None
    for link in links:
        with suppress(OSError):
            if os.path.samestat(link.stat(), wanted):
                return True
    return False
