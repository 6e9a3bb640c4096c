"""Watching a run that somebody else carries out, until it is over."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from budgets.events import Event
from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.state import RunState
from orchestrator.watch.follow import Follower
from orchestrator.watch.signs import HEARTBEATS
from orchestrator.watch.snapshot import Snapshot

LOOK_SECONDS = 1.0
"""How often the ledger is looked at, unless that is dear."""

LOOK_SHARE = 0.002
"""Of a core, that a snapshot of what the ledger says may take; a large one is taken less often."""

PATIENCE = 3
"""Looks in a row at a ledger that cannot be read, before it is not just being replaced."""


class Reader(Protocol):
    """Whoever is told of a run."""

    def hear(self, state: RunState, event: Event) -> None:
        """A record was written, `state` being as of it."""

    def see(self, found: Snapshot) -> bool:
        """The run as it stands. Answers whether anybody still looks."""


def watch(
    follower: Follower, reader: Reader, now: Callable[[], datetime], wait: Callable[[float], None]
) -> None:
    """Tell the reader of the run, from now on, until it is over or nobody looks any more.

    Raises as `Follower.advance` does, once it is clear that the ledger stays as it is.
    """
    follower.advance()  # what was before is in the snapshot
    failures = 0
    while True:
        began = time.thread_time()
        if not failures and not _is_looked_at(reader, _seen(follower, now())):
            return
        wait(max(LOOK_SECONDS, (time.thread_time() - began) / LOOK_SHARE))
        try:
            _tell_news(follower, reader, is_news=not failures)
            failures = 0
        except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError):
            failures += 1
            if failures == PATIENCE:
                raise


def _tell_news(follower: Follower, reader: Reader, *, is_news: bool) -> None:
    """The records since the last look; of a ledger that replaced another one none is news."""
    for record in follower.news():
        is_news = is_news and record.seq > 0
        if is_news and follower.state is not None:
            reader.hear(follower.state, record.event)


def _is_looked_at(reader: Reader, found: Snapshot | None) -> bool:
    return found is None or (reader.see(found) and not found.is_over)


def _seen(follower: Follower, now: datetime) -> Snapshot | None:
    found = follower.snapshot(now, HEARTBEATS)
    if found is None or not follower.is_gone:
        return found
    return found.model_copy(update={"standing": "interrupted", "whose": "its ledger is gone"})
