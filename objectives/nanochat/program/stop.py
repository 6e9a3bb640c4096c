"""A person's wish to end a training run, as signals bring it."""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Any, Self

EXIT_SIGNAL = 128  # plus the signal's number


class StoppedError(Exception):
    """Training was left early on request."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = EXIT_SIGNAL + signum


class Stop:
    """The first SIGINT or SIGTERM asks for an end after the step, the second ends the process.

    A context manager: both signals are taken over inside.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self.receive)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def receive(self, signum: int, _frame: FrameType | None = None) -> None:
        if self.signum is not None:
            os._exit(EXIT_SIGNAL + signum)
        self.signum = signum
        with suppress(OSError):
            os.write(2, b"\nSaving a checkpoint; interrupt again to end at once.\n")

    def check(self) -> None:
        """Raises StoppedError once an end was asked for."""
        if self.signum is not None:
            raise StoppedError(self.signum)
