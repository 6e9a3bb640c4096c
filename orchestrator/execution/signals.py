"""A person's wish to end a run, as signals bring it: the first drains it, the second kills."""

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
    """A person has interrupted for the second time. Holds the signal's number."""


@contextmanager
def insisted_on(heard: list[int]) -> Iterator[None]:
    """Within the block a second SIGINT or SIGTERM raises Insisted in the main thread.

    It is for what cannot look at flags: an evaluation in this process, Ray's start. Whoever
    handles the signals hears every one as before. `heard` is kept from block to block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in INTERRUPTS}

    def receive(signum: int, frame: FrameType | None) -> None:
        heard.append(signum)
        handler = before[signal.Signals(signum)]
        if callable(handler):
            handler(signum, frame)
        if len(heard) > 1:
            raise Insisted(signum)

    try:
        for signum in INTERRUPTS:
            signal.signal(signum, receive)
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if len(heard) > 1:  # raised where Python drops exceptions: in a hook of fork, say
        raise Insisted(heard[-1])


def at_once(text: str) -> None:
    """Say it whatever is being printed at the moment: a signal's handler waits for nobody."""
    os.write(2, f"\n{text}\n".encode())


@dataclass
class SignalStop:
    """The first SIGINT or SIGTERM lets running evaluations finish, the second kills them.

    So does waiting for them longer than `drain_seconds`.
    """

    drain_seconds: float | None = None
    monotonic: Callable[[], float] = time.monotonic
    announce: Callable[[str], None] = at_once
    requested: bool = False
    signum: int = 0
    _since: float = 0.0
    _insisted: bool = False

    @property
    def now(self) -> bool:
        """Kill what runs."""
        if not self.requested or self._insisted:
            return self._insisted
        waited = self.monotonic() - self._since
        return self.drain_seconds is not None and waited > self.drain_seconds

    def install(self) -> None:
        """Take over both signals."""
        for signum in INTERRUPTS:
            signal.signal(signum, self._receive)

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self.announce("Finishing what is running; interrupt again to kill it.")
            self._since = self.monotonic()
        self._insisted = self.requested
        self.requested = True
        self.signum = signum
