"""A person's wish to end a run, as signals bring it."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType


@dataclass
class SignalStop:
    """The first SIGINT or SIGTERM lets running evaluations finish, the second kills them.

    So does waiting for them longer than `drain_seconds`.
    """

    drain_seconds: float | None = None
    monotonic: Callable[[], float] = time.monotonic
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
        if not self.requested:  # written at once: whatever else prints may be in the middle of it
            os.write(2, b"\nFinishing what is running; interrupt again to kill it.\n")
            self._since = self.monotonic()
        self._insisted = self.requested
        self.requested = True
        self.signum = signum
