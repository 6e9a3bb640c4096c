"""A person's wish to end a run, as signals bring it."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType


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
        if not self.requested or self._insisted:
            return self._insisted
        waited = self.monotonic() - self._since
        return self.drain_seconds is not None and waited > self.drain_seconds

    def install(self) -> None:
        """Take over both signals."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._receive)

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self.announce("Finishing what is running; interrupt again to kill it.")
            self._since = self.monotonic()
        self._insisted = self.requested
        self.requested = True
        self.signum = signum
