"""Orchestrators of this host that share slots: who they are, what each takes the limit to be.

Each has a file of its own, locked as long as it lives, so a file that can be locked is a dead one's
and is removed.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.capacity.host_files import Held, locked

PREFIX = "orchestrator-"
BYTES = 120  # of a file: it is written whole, over itself


@dataclass(frozen=True, slots=True)
class Peer:
    """Another orchestrator that is alive."""

    pid: int
    max_concurrent: int
    starving: bool  # it holds no slot and wants one


class Peers:
    """This orchestrator's file, and a look at the others'."""

    def __init__(self, directory: Path, max_concurrent: int, token: str) -> None:
        self._directory = directory
        self._max_concurrent = max_concurrent
        self._name = f"{PREFIX}{os.getpid()}-{token}"
        self._held = Held()
        self._starving = False
        aside = f".{self._name}"  # it appears locked, or not at all
        if not self._held.take(directory, aside):
            raise AssertionError(f"{aside} has a name that nobody else uses")
        self._aside = aside
        self._tell()
        (directory / aside).rename(directory / self._name)

    @property
    def starving(self) -> bool:
        return self._starving

    @starving.setter
    def starving(self, value: bool) -> None:
        if value != self._starving:
            self._starving = value
            self._tell()

    def _tell(self) -> None:
        facts = {
            "pid": os.getpid(),
            "max_concurrent": self._max_concurrent,
            "starving": self._starving,
        }
        self._held.write(self._aside, json.dumps(facts).ljust(BYTES).encode())

    def others(self) -> list[Peer]:
        """Those alive now; files of dead ones are removed."""
        return list(self._look())

    def _look(self) -> Iterator[Peer]:
        for path in sorted(self._directory.glob(f"{PREFIX}*")):
            if path.name == self._name:
                continue
            dead = locked(path, fcntl.LOCK_SH, make=False)
            if dead is not None:
                path.unlink(missing_ok=True)
                os.close(dead)
                continue
            with suppress(OSError, ValueError, KeyError, TypeError):  # gone or being written
                facts = json.loads(path.read_bytes())
                yield Peer(facts["pid"], facts["max_concurrent"], facts["starving"])

    def leave(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            (self._directory / self._name).unlink(missing_ok=True)
        self._held.give_back()
