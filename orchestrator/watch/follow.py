"""A run watched from outside: by its ledger as it grows, and what its attempts write."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from budgets.ledger.chain import Record
from budgets.state import RunState
from orchestrator.records.tail import Tail
from orchestrator.watch.noted import Noted
from orchestrator.watch.signs import Signs
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.take import snapshot


@dataclass
class Follower:
    """Whoever watches the run in `directory`. Reads; writes nothing; takes no lock."""

    directory: Path
    _tail: Tail = field(init=False)
    _signs: Signs = field(init=False)
    _noted: Noted = field(default_factory=Noted)

    def __post_init__(self) -> None:
        self._tail, self._signs = Tail(self.directory), Signs(self.directory)

    @property
    def state(self) -> RunState | None:
        """The run as of the last look; None before its first whole record."""
        return self._tail.state

    @property
    def is_gone(self) -> bool:
        """Whether its ledger was there before, and is not any more."""
        return self._tail.is_gone

    def advance(self) -> list[Record]:
        """Look again: the records that are new, all of them if the ledger is another one.

        Raises as `Tail.advance` does.
        """
        return list(self.news())

    def news(self) -> Iterator[Record]:
        """The same, one after the other: `state` is as of the one that was given last."""
        for record in self._tail.news():
            if record.seq == 0:
                self._noted = Noted()
            assert self.state is not None, "it is of this record"
            self._noted.note(self.state, record.event, datetime.fromisoformat(record.at))
            yield record

    def snapshot(self, now: datetime, most: int | None = None) -> Snapshot | None:
        """The run as of the last `advance`, with what its attempts have written by now.

        The files of `most` attempts only, those nearest to their end or beyond it.
        """
        if self.state is None:
            return None
        return self._signs.seen(snapshot(self.state, self._noted, now), most)
