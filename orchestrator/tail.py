"""A ledger followed while it grows, without disturbing whoever writes it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from budgets.chain import LEDGER, Reader, Record
from budgets.fold import apply, begin
from budgets.state import RunState
from orchestrator.recorded import is_there


@dataclass
class Tail:
    """A run in `directory`, as far as its ledger had whole records when it was last looked at.

    What has been read is not read again, so that a look costs what is new.
    """

    directory: Path
    state: RunState | None = None  # None: no whole record has been there yet
    _reader: Reader = field(init=False)
    _read_bytes: int = 0  # up to the end of the last whole record
    _inode: int = 0

    def __post_init__(self) -> None:
        self._begin_anew(0)

    def advance(self) -> list[Record]:
        """The records that are new since the last look, `state` being as of the last of them.

        A ledger that has been replaced by another one, or a shorter one, is read anew: then they
        begin with its first. Raises as `recorded_state` does; OSError.
        """
        return list(self.each())

    def each(self) -> Iterator[Record]:
        """As `advance`, one after the other: `state` is as of the one that came last."""
        path = self.directory / LEDGER
        if not is_there(path):
            return
        found = path.stat()
        if found.st_ino != self._inode or found.st_size < self._read_bytes:
            self._begin_anew(found.st_ino)
        if found.st_size == self._read_bytes:
            return
        with path.open("rb") as file:
            file.seek(self._read_bytes)
            data = file.read()
        for line in data.splitlines(keepends=True):
            if line[-1:] == b"\n":
                yield self._take(line)

    def _begin_anew(self, inode: int) -> None:
        self._reader = Reader(self.directory / LEDGER, b"")
        self._inode, self._read_bytes, self.state = inode, 0, None

    def _take(self, line: bytes) -> Record:
        state = self.state
        seq, previous = (0, "") if state is None else (state.records, state.head)
        record = self._reader.check(line[:-1], seq, self._read_bytes, previous)
        if state is None:
            self.state = begin(record)
        else:
            apply(state, record)
        self._read_bytes = record.end
        return record
