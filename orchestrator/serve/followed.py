"""One run that is followed: read again only where its ledger has changed."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LEDGER, LedgerCorruptError
from budgets.state import RunState
from orchestrator.records.standing import GOES_ON, WAITS, goes_on
from orchestrator.serve.entry import Entry, Standing, entry_of, entry_without_state
from orchestrator.watch.follow import Follower
from orchestrator.watch.snapshot import Snapshot

UNREADABLE = (LedgerCorruptError, ImpossibleEventError, ValueError, OSError)
"""Why a ledger cannot be read. Each says how to go on."""

MOST_HEARTBEATS = 32
"""Attempts in flight whose files are read at a look."""

Stamp = tuple[int, int, int]
"""A file's inode, size and time: as long as they are the same, so is what it says."""


@dataclass(frozen=True)
class Sight:
    """A run that can be read, at a moment."""

    snapshot: Snapshot
    stage: str  # another one when its report has something new to say


@dataclass
class Followed:
    """The run in `directory`. Threads may share it."""

    id: str
    directory: Path
    place: Path  # as seen from what is listed
    entry: Entry = field(init=False)
    _stamp: Stamp | None = None
    _sight: Sight | None = None  # of a run that is over: of no other is it kept
    _follower: Follower | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.entry = self._without_state("unread")

    def is_behind(self) -> bool:
        """Whether there is something to read."""
        return self._stamp != stamp_of(self.directory)

    def look(self, now: datetime) -> Entry:
        """The entry as of now."""
        with self._lock:
            self._look(now)
            return self.entry

    def sight(self, now: datetime) -> Sight | None:
        """All there is to watch of it; None where its ledger cannot be read: the entry says why."""
        with self._lock:
            self._look(now)
            if self.entry.standing in ("empty", "damaged"):
                return None
            if self._sight is None:
                return self._take(now)
            return self._sight

    def _look(self, now: datetime) -> None:
        if self.is_behind():
            self._read(now)
        elif self._follower is not None and self._follower.state is not None:
            state = self._follower.state
            if goes_on(state, now) != self.entry.goes_on:
                self.entry = entry_of(self.id, self.place, state, now)
                self._let_go()

    def _read(self, now: datetime) -> None:
        stamp = stamp_of(self.directory)  # before the reading: what comes after is new
        if _has_not_grown(self._stamp, stamp):  # it was changed in its midst
            self._follower = None
        self._stamp, self._sight = stamp, None
        try:
            state = self._advance().state
        except UNREADABLE as error:
            self._follower = None
            self.entry = self._without_state("damaged", error)
            return
        if state is None:
            self.entry = self._without_state("empty")
        else:
            self.entry = entry_of(self.id, self.place, state, now)
        self._let_go()

    def _without_state(self, standing: Standing, error: object = "") -> Entry:
        return entry_without_state(self.id, self.directory, self.place, standing, error)

    def _advance(self) -> Follower:
        self._follower = self._follower or Follower(self.directory)
        self._follower.advance()
        return self._follower

    def _take(self, now: datetime) -> Sight | None:
        try:
            follower = self._advance()
            snapshot = follower.snapshot(now, MOST_HEARTBEATS)
        except UNREADABLE:  # changed since: the next look says why
            self._stamp, self._follower = None, None
            return None
        assert follower.state is not None, "a run that can be read has records"
        assert snapshot is not None, "and a snapshot"
        sight = Sight(snapshot, f"{stage_of(follower.state)} {snapshot.standing}")
        if self._let_go():
            self._sight = sight
        return sight

    def _let_go(self) -> bool:
        """A state is large: it is kept of runs that may go on, and read again of others."""
        if self.entry.standing in (*GOES_ON, *WAITS):
            return False
        self._follower = None
        return True


def _has_not_grown(before: Stamp | None, now: Stamp | None) -> bool:
    return before is not None and now is not None and now[1] <= before[1]


def stage_of(state: RunState) -> str:
    """How far a run has come, in steps that its report is about."""
    steps = (
        state.finished,
        sum(panel.closed for panel in state.panels.values()),
        len(state.opened),
        len(state.fired),
        len(state.overridden),
        len(state.amended),
        len(state.salvaged),
        state.decided is not None,
        state.concluded is not None,
        0 if state.plan.search is not None else state.accounts.evaluations,  # all in one generation
    )
    return " ".join(str(int(step)) for step in steps)


def stamp_of(directory: Path) -> Stamp | None:
    """The ledger's; None where it is gone."""
    try:
        found = (directory / LEDGER).lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
