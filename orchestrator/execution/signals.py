"""SIGINT and SIGTERM: the first lets running evaluations finish, the second kills them."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


class Insisted(BaseException):
    """The second SIGINT or SIGTERM has come. Its argument is the signal's number."""


@contextmanager
def insisted_on(received: list[int]) -> Iterator[None]:
    """Within the block a second SIGINT or SIGTERM raises Insisted in the main thread.

    It is for code that cannot check a flag: an evaluation in this process, the start of Ray. The
    handlers in place still get every signal. `received` counts from block to block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in INTERRUPTS}

    def receive(signum: int, frame: FrameType | None) -> None:
        received.append(signum)
        handler = before[signal.Signals(signum)]
        if callable(handler):
            handler(signum, frame)
        if len(received) > 1:
            raise Insisted(signum)

    try:
        for signum in INTERRUPTS:
            signal.signal(signum, receive)
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if len(received) > 1:  # raised where Python drops exceptions, for example in a hook of fork
        raise Insisted(received[-1])


def at_once(text: str) -> None:
    """Write a line to stderr from a signal's handler, whatever is being printed."""
    os.write(2, f"\n{text}\n".encode())


@dataclass
class SignalStop:
    """A run's `Stop` by signals: the first SIGINT or SIGTERM drains the run, the second kills it.

    So does a drain that takes longer than `drain_seconds`.
    """

    drain_seconds: float | None = None
    announce: Callable[[str], None] = at_once
    requested: bool = False
    signum: int = 0
    _kill_at: float = math.inf

    @property
    def now(self) -> bool:
        """Whether running evaluations are to be killed."""
        return time.monotonic() >= self._kill_at

    def install(self) -> None:
        """Handle both signals."""
        for signum in INTERRUPTS:
            signal.signal(signum, self._receive)

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self.announce("Finishing what is running; interrupt again to kill it.")
        seconds = 0.0 if self.requested else self.drain_seconds
        self._kill_at = math.inf if seconds is None else time.monotonic() + seconds
        self.requested, self.signum = True, signum
