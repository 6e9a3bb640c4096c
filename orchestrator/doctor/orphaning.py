"""Loses a grandchild on purpose and finds it again: a process of its own for `doctor`.

What a supervisor relies on, done with the very calls that it uses: an orphan that has left its
session comes back, its memory can be seen, its mark can be read, and it can be ended.
"""

import json
import os
import select
import signal
import sys
from contextlib import suppress

from objectives.programs.environment import MARK
from orchestrator.execution import processes

WAIT_MS = 3000


def main() -> None:
    """One JSON object: which of these things hold here."""
    processes.adopt_orphans()
    ours, theirs = os.pipe()
    middle = os.fork()
    if middle == 0:
        _leave_a_daemon(theirs)
    os.close(theirs)
    os.waitpid(middle, 0)
    orphan = int(os.read(ours, 20) or b"0")
    answer = {
        "adopted": orphan in processes.descendants(os.getpid()),
        "memory": processes.resident_bytes([orphan]) > 0,
        "marked": orphan in processes.marked(os.environ.get(MARK, "")),
        "ended": _is_ended(orphan, ours),
    }
    sys.stdout.write(f"{json.dumps(answer)}\n")


def _leave_a_daemon(theirs: int) -> None:
    """In the middle process: fork one that flees into a session of its own, and die."""
    if os.fork() == 0:
        os.setsid()
        os.write(theirs, str(os.getpid()).encode())
        signal.alarm(20)  # ends it, whatever becomes of us
        signal.pause()
    os._exit(0)


def _is_ended(orphan: int, ours: int) -> bool:
    """Whether SIGKILL ends it and it can be reaped: its end of the pipe then closes."""
    processes.send([orphan], signal.SIGKILL)
    closed = bool(select.select([ours], [], [], WAIT_MS / 1000)[0])
    with suppress(ChildProcessError):
        return os.waitpid(orphan, 0)[0] == orphan
    return closed


if __name__ == "__main__":
    main()
