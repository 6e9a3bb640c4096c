"""The terminal is left in order, whatever becomes of the process that paints on it."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rich.console import Console

from orchestrator.watch.screen import ERASE_BELOW

WAIT_FOR_THE_END = r"read -r end || printf '\033[J'"
"""For a shell: its input ends without a line when the process that holds it is killed."""


@contextmanager
def tidy(console: Console) -> Iterator[None]:
    """Within the block, what is painted below the cursor goes when the process stops or is killed.

    To be used by the main thread; in another one nothing is done about a process that stops.
    """
    with _gone_when_killed(console), _gone_when_stopped(console):
        yield


@contextmanager
def _gone_when_stopped(console: Console) -> Iterator[None]:
    """Ctrl-Z: the terminal is the shell's until the job comes back."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
        yield
        return

    def stop(signum: int, _frame: FrameType | None) -> None:
        with suppress(OSError, ValueError):
            os.write(console.file.fileno(), f"\r{ERASE_BELOW}".encode())
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
        signal.signal(signum, stop)  # it goes on

    signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)


@contextmanager
def _gone_when_killed(console: Console) -> Iterator[None]:
    """A shell in a session of its own outlives us: no signal for our group is for it."""
    try:
        heir = subprocess.Popen(
            ["/bin/sh", "-c", WAIT_FOR_THE_END],
            stdin=subprocess.PIPE,
            stdout=console.file.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            heir.communicate(b"\n")
