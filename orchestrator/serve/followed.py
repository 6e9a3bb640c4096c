"""One run that is followed: read again only where its ledger has changed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TypeVar

from budgets.chain import LEDGER, LedgerCorruptError, Record
from budgets.fold import ImpossibleEventError
from budgets.head import Mark, lost, read_mark
from orchestrator.campaign.heard import Heard
from orchestrator.recorded import recorded_state
from orchestrator.serve.entry import Entry, empty, entry_of, unread, unreadable
from orchestrator.tail import Tail

T = TypeVar("T")

UNREADABLE = (LedgerCorruptError, ImpossibleEventError, ValueError, OSError)
"""Why a ledger cannot be read. Each says how to go on."""

Stamp = tuple[int, int, int]
"""A file's inode, size and time: as long as they are the same, so is what it says."""


@dataclass
class Followed:
    """The run in `directory`. Threads may share it."""

    id: str
    directory: Path
    place: Path  # as seen from what is listed
    entry: Entry = field(init=False)
    _stamp: Stamp | None = None
    _tail: Tail | None = None
    _last: datetime | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.entry = unread(self.id, self.directory, self.place)

    def is_behind(self) -> bool:
        """Whether there is something to read."""
        return self._stamp != stamp_of(self.directory)

    def look(self, now: datetime) -> Entry:
        """The entry as of now."""
        with self._lock:
            if self.is_behind():
                self.entry = self._read(now)
            elif (heard := self._kept()) is not None:
                goes_on = heard.goes_on(now)
                if goes_on != (self.entry.standing == "running"):
                    self.entry = entry_of(self.id, self.place, heard, now)
            return self.entry

    def ask(self, question: Callable[[Heard], T]) -> T | None:
        """The answer of the run as of its last record; None where none is there.

        Raises as `recorded_state`, OSError.
        """
        with self._lock:
            heard = self._kept() or self._advance()
            answer = None if heard is None else question(heard)
            self._let_go()
            return answer

    def _read(self, now: datetime) -> Entry:
        stamp = stamp_of(self.directory)  # before the reading: what comes after is new
        try:
            heard = self._advance()
        except UNREADABLE as error:
            self._tail = None
            self.entry = unreadable(self.id, self.directory, self.place, error)
        else:
            if heard is None:
                self.entry = empty(self.id, self.directory, self.place)
            else:
                self.entry = entry_of(self.id, self.place, heard, now)
        self._let_go()
        self._stamp = stamp
        return self.entry

    def _kept(self) -> Heard | None:
        tail = self._tail
        if tail is None or tail.state is None or self._last is None:
            return None
        return Heard(tail.state, self._last)

    def _advance(self) -> Heard | None:
        mark = read_mark(self.directory / LEDGER)  # before the ledger: both may be growing
        tail = self._tail or Tail(self.directory)
        records = tail.advance()
        if records:
            self._last = datetime.fromisoformat(records[-1].at)
        if mark is not None and records and records[0].seq == 0:
            self._compare(mark, records)
        self._tail = tail
        return self._kept()

    def _compare(self, mark: Mark, records: list[Record]) -> None:
        """Raises LedgerRolledBackError where the whole ledger lacks what its mark has seen."""
        marked = records[mark.seq].digest if 0 <= mark.seq < len(records) else ""
        if lost(len(records), mark, marked):
            recorded_state(self.directory)  # which knows what may be missing all the same

    def _let_go(self) -> None:
        """A state is large; only of runs that may go on it is needed soon."""
        if self.entry.standing not in ("running", "interrupted"):
            self._tail = None


def stamp_of(directory: Path) -> Stamp | None:
    """The ledger's; None where it is gone."""
    try:
        found = (directory / LEDGER).lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
