"""A ledger followed while it grows, without disturbing the process that writes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger import LEDGER, Reader, Record
from budgets.state import RunState, apply, begin
from orchestrator.records.runs import is_there


@dataclass
class Tail:
    """A run in `directory`, as its whole records were at the last look."""

    directory: Path
    state: RunState | None = None  # None: no whole record yet
    is_gone: bool = False  # no ledger is there
    _seen: tuple[int, int, int] | None = None  # inode, size and time of change at the last look

    def news(self) -> Iterator[Record]:
        """Yield the records that are new since the last look, each applied to `state`.

        A ledger that was replaced by another is told from its first record. Raises as
        `recorded_state` does, and OSError.
        """
        path = self.directory / LEDGER
        self.is_gone = not is_there(path)
        if self.is_gone:
            return
        stat = path.stat()
        seen = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if seen == self._seen:
            return
        records = list(Reader(path))  # the whole ledger: 5,000 records take 0.07 s
        known = 0 if self.state is None else self.state.records
        if self.state is not None and [r.digest for r in records[known - 1 : known]] != [
            self.state.head
        ]:
            self.state, known = None, 0
        for record in records[known:]:
            if self.state is None:
                self.state = begin(record)
            else:
                apply(self.state, record)
            yield record
        self._seen = seen
