"""All runs of a directory as they stand, in an order that a person looks for them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from time import monotonic

from orchestrator.serve.entry import Entry
from orchestrator.serve.followed import Followed, stamp_of
from orchestrator.serve.places import identifier, places
from orchestrator.serve.shared import Shared

FRESH_SECONDS = 1.0
"""A list is as old as that at most; with it the runs that have come and gone."""

PATIENCE_SECONDS = 0.5
"""For reading ledgers that nobody has read yet: of hundreds, a thread reads the rest meanwhile."""


@dataclass(frozen=True)
class Listing:
    """What is there."""

    entries: tuple[Entry, ...]
    is_all: bool  # the whole directory was looked through
    unread: int  # ledgers that are still to be read

    @property
    def running(self) -> int:
        return sum(entry.goes_on for entry in self.entries)


class Catalogue:
    """The runs in or below `root`. Threads may share it."""

    def __init__(
        self,
        root: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self.root = root.absolute()
        self.now = now
        self._clock = clock
        self._runs: dict[str, Followed] = {}
        self._reader: Thread | None = None
        self._listing = Shared(self._look, fresh_seconds, clock)

    def listing(self) -> Listing:
        """All runs: those that go on first, then the latest."""
        return self._listing.get()

    def find(self, id_: str) -> Followed | None:
        """The run of that id, if it is there."""
        self.listing()
        return self._runs.get(id_)

    def runs(self) -> tuple[Followed, ...]:
        """Every one of them."""
        self.listing()
        return tuple(self._runs.values())

    def _look(self) -> Listing:
        found = places(self.root)
        known = self._runs
        runs = {}
        for directory in found.directories:
            id_ = identifier(directory)
            runs[id_] = known.get(id_) or Followed(id_, directory, self._place(directory))
        self._runs = runs
        self._read()
        entries = sorted((run.entry for run in runs.values()), key=_order)
        unread = sum(entry.standing == "unread" for entry in entries)
        if unread and self._reader is None:
            self._reader = Thread(target=self._read_rest, daemon=True)
            self._reader.start()
        return Listing(tuple(entries), found.is_all, unread)

    def _place(self, directory: Path) -> Path:
        return Path(os.path.relpath(directory, self.root))

    def _read(self) -> None:
        """Look at every run that was read before, and at others while there is time."""
        began, now = self._clock(), self.now()
        for run in self._latest_first():
            is_late = self._reader is not None or self._clock() - began > PATIENCE_SECONDS
            if run.entry.standing != "unread" or not is_late:
                run.look(now)

    def _read_rest(self) -> None:
        try:
            for run in self._latest_first():
                if run.entry.standing == "unread":
                    run.look(self.now())
        finally:
            self._reader = None

    def _latest_first(self) -> list[Followed]:
        return sorted(self._runs.values(), key=_latest)

    def settle(self, seconds: float) -> None:
        """Wait until every ledger has been read once, so long at most."""
        if (reader := self._reader) is not None:
            reader.join(seconds)


def _latest(run: Followed) -> int:
    stamp = stamp_of(run.directory)
    return 0 if stamp is None else -stamp[2]


def _order(entry: Entry) -> tuple[bool, float, str]:
    """Runs that go on do not change places while they do."""
    running = entry.goes_on
    return not running, -(entry.began if running else entry.heard).timestamp(), entry.place
