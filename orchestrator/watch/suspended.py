"""Ctrl-Z: the terminal is the shell's until the job comes back."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rich.console import Console

from orchestrator.watch.screen import ERASE_BELOW


@contextmanager
def suspended(console: Console) -> Iterator[None]:
    """Within the block, a suspended process takes its picture away before it stops."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, _frame: FrameType | None) -> None:
        with suppress(OSError, ValueError):
            os.write(console.file.fileno(), f"\r{ERASE_BELOW}".encode())
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
        signal.signal(signum, stop)  # it goes on

    before = signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)
