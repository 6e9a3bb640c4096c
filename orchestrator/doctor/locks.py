"""Whether a lock keeps two processes apart where the runs lie: tried, not believed."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

from budgets.ledger.lock import give_back
from orchestrator.doctor.finding import Finding
from orchestrator.running.place import NETWORK, check_place, file_system

TAKEN, REFUSED = "taken", "refused"
TRY_SECONDS = 10.0
_TRY = f"""
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print({TAKEN!r})
except BlockingIOError:
    print({REFUSED!r})
"""

Elsewhere = Callable[[Path], str]
"""Tries to take the lock in another process: `taken`, `refused`, or what went wrong."""

ELSEWHERE = "name a directory on a local disk with --runs-dir"


def try_elsewhere(lock: Path) -> str:
    """What a new process makes of the lock, within 10 s."""
    command = [sys.executable, "-I", "-S", "-c", _TRY, str(lock)]
    try:
        tried = subprocess.run(
            command, capture_output=True, text=True, timeout=TRY_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a lock there did not answer within {TRY_SECONDS:g} s"
    said = (tried.stdout or tried.stderr).strip().splitlines()
    return said[-1] if said else f"ended with {tried.returncode}"


def locks(parent: Path, elsewhere: Elsewhere = try_elsewhere) -> Finding:
    """A lock such as a ledger's, on a file without a name there, tried from elsewhere."""
    try:
        with TemporaryFile(dir=parent) as file:
            return _tried(file.fileno(), elsewhere)
    except OSError as error:
        seen = f"could not be tried in {parent}: {error.strerror}"
        return Finding("file locks", "unknown", seen, f"{ELSEWHERE}, or mend {parent}")


def _tried(lock: int, elsewhere: Elsewhere) -> Finding:
    item, path = "file locks", Path(f"/proc/{os.getpid()}/fd/{lock}")
    if not _is_taken(lock):
        return Finding(item, "missing", "a lock that nobody holds is refused", ELSEWHERE)
    held, here = elsewhere(path), _again(path)
    give_back(lock)
    released = elsewhere(path)
    if TAKEN in (held, here):
        seen = "a lock that is held was given to a second holder: two runs could write one ledger"
        return Finding(item, "missing", seen, ELSEWHERE)
    if held != REFUSED or released not in (TAKEN, REFUSED):
        return Finding(item, "unknown", f"{held}; {released}", ELSEWHERE)
    if released == REFUSED:
        return Finding(item, "missing", "a lock that was given back stays taken", ELSEWHERE)
    return Finding(item, "ok", "flock keeps a second process out, and lets it in afterwards")


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _again(path: Path) -> str:
    """What this process makes of it where it opens the file once more."""
    other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return TAKEN if _is_taken(other) else REFUSED
    finally:
        os.close(other)


def place(directory: Path, *, allow_network: bool = False, mounts: str | None = None) -> Finding:
    """Whether a ledger may lie there; `mounts` as in `check_place`."""
    item = "file system"
    try:
        check_place(directory, allow_network=allow_network, mounts=mounts)
    except ValueError as error:
        return Finding(item, "missing", str(error), ELSEWHERE)
    kind = file_system(directory.absolute().resolve(), mounts)
    if not kind:
        seen = f"nothing says what {directory} is on"
        return Finding(item, "unknown", seen, f"df {directory}; if it is a network's, {ELSEWHERE}")
    if kind in NETWORK:
        return Finding(item, "ok", f"{kind}, a network's, allowed: run one orchestrator only")
    return Finding(item, "ok", f"{kind}, this machine's own")
