"""A person's wish to end a training run, as signals bring it."""

import os
import signal
from types import FrameType

EXIT_SIGNAL = 128  # plus the signal's number


class StoppedError(Exception):
    """Training was left early on request."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = EXIT_SIGNAL + signum


class Stop:
    """The first SIGINT or SIGTERM asks for an end after the step, the second ends the process."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def install(self) -> None:
        """Take over both signals."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self.receive)

    def receive(self, signum: int, _frame: FrameType | None = None) -> None:
        if self.signum is not None:
            os._exit(EXIT_SIGNAL + signum)
        self.signum = signum
        os.write(2, b"\nSaving a checkpoint; interrupt again to end at once.\n")

    def check(self) -> None:
        """Raises StoppedError once an end was asked for."""
        if self.signum is not None:
            raise StoppedError(self.signum)
