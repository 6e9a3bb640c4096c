"""A person's wish to end a run, as signals bring it."""

import os
import signal
from dataclasses import dataclass
from types import FrameType


@dataclass
class SignalStop:
    """The first SIGINT or SIGTERM lets running evaluations finish, the second kills them."""

    requested: bool = False
    now: bool = False
    signum: int = 0

    def install(self) -> None:
        """Take over both signals."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._receive)

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        if not self.requested:  # written at once: whatever else prints may be in the middle of it
            os.write(2, b"\nFinishing what is running; interrupt again to kill it.\n")
        self.now = self.requested
        self.requested = True
        self.signum = signum
