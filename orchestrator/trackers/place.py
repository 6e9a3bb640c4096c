"""Where a tracker's things lie in a run's directory, and what it was told so far.

    trackers/wandb/       its own files
    trackers/wandb.json   how far it was told
    trackers/wandb.log    what its library printed, of the last follower
    trackers/wandb.lock   held by the process that tells it

All of it can be deleted; then everything is told again.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from budgets.frozen import Frozen
from budgets.ledger.storage import read_plain, write_aside

TRACKERS = "trackers"


class Told(Frozen):
    """How much of a ledger a tracker knows."""

    ledger: str  # digest of its first record
    records: int = Field(default=0, ge=0)
    step: int = Field(default=0, ge=0)  # evaluations that were over then
    is_ended: bool = False  # the summary as of these records was told too


class Answer(Frozen):
    """How a follower's work went, as it says itself."""

    error: str | None = None
    records: int = 0  # that were told in all


@dataclass(frozen=True)
class Place:
    """Of one tracker, in one run's directory."""

    run: Path
    name: str

    @property
    def directory(self) -> Path:
        return self.run / TRACKERS

    @property
    def files(self) -> Path:
        return self.directory / self.name

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    def make(self) -> None:
        """Raises ValueError where a part is a link, OSError where it cannot be made."""
        for part in (self.directory, self.files):
            if part.is_symlink():
                raise ValueError(
                    f"{part} is a symbolic link: expected a directory of the run's own"
                )
            part.mkdir(mode=0o700, exist_ok=True)

    def recall(self, ledger: str) -> Told:
        """What the tracker knows of that ledger; nothing where nobody can tell."""
        with suppress(OSError, ValueError, ValidationError):
            told = Told.model_validate_json(read_plain(self._memory))
            if told.ledger == ledger:
                return told
        return Told(ledger=ledger)

    def remember(self, told: Told) -> None:
        """Raises OSError."""
        write_aside(self._memory, told.model_dump_json().encode() + b"\n", durable=False)

    def forget(self) -> None:
        """Nothing was told: all of it comes again."""
        self._memory.unlink(missing_ok=True)

    def lock(self, wait_seconds: float, is_over: Callable[[], bool]) -> int:
        """A descriptor that holds the place. Raises ValueError where another process keeps it."""
        path = self.directory / f"{self.name}.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        until = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until or is_over():
                    os.close(handle)
                    raise ValueError(
                        f"another process is logging this run to {self.name} ({path} is held)"
                    ) from None
                time.sleep(0.05)
            else:
                return handle

    @property
    def _memory(self) -> Path:
        return self.directory / f"{self.name}.json"


def empty(directory: Path) -> None:
    """Take away what lies in a tracker's directory; the directory stays."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
