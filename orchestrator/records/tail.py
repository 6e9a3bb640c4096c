"""A ledger followed while it grows, without disturbing whoever writes it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger import (
    LEDGER,
    LedgerCorruptError,
    Mark,
    Reader,
    Record,
    check_mark,
    lacks_a_sector,
    read_mark,
)
from budgets.state import RunState, apply, begin
from budgets.storage import plain_file
from orchestrator.records.runs import is_there


@dataclass
class Tail:
    """A run in `directory`, as far as its ledger had whole records when it was last looked at.

    What has been read is not read again, so that a look costs what is new.
    """

    directory: Path
    state: RunState | None = None  # None: no whole record has been there yet
    is_gone: bool = False  # its ledger, which had been there before
    _reader: Reader | None = None  # knows the schema of the session
    _last: Record | None = None
    _read_bytes: int = 0  # up to the end of that record, without its newline if that was missing
    _inode: int = 0

    def news(self) -> Iterator[Record]:
        """The records that are new since the last look; `state` is as of the one given last.

        A ledger that was replaced by another one is read from its first record. Raises as
        `recorded_state` does; OSError.
        """
        path = self.directory / LEDGER
        there = is_there(path)
        self.is_gone = self.state is not None and not there
        if not there:
            return
        with plain_file(path) as handle:
            if not self._goes_on(handle):
                self._begin_anew(path, os.fstat(handle).st_ino)
            mark = None if self.state else read_mark(path)  # before the records: both grow
            data = _rest(handle, self._read_bytes)
        yield from self._records(path, data, mark)

    def _goes_on(self, handle: int) -> bool:
        """Whether it is still the ledger that was read: its last record's seal proves the rest."""
        if self._last is None or os.fstat(handle).st_ino != self._inode:
            return False
        line = self._last.line
        return os.pread(handle, len(line), self._last.offset) == line

    def _begin_anew(self, path: Path, inode: int) -> None:
        self._reader, self._inode = Reader(path, b""), inode
        self._read_bytes, self.state, self._last = 0, None, None

    def _records(self, path: Path, data: bytes, mark: Mark | None) -> Iterator[Record]:
        """Those in `data`, which follows what is known; the mark must be among them."""
        *lines, torn = data.split(b"\n")
        if self._last is not None and self._read_bytes < self._last.end and lines:
            self._read_bytes += len(lines.pop(0)) + 1  # the newline that had been missing
        marked = ""
        for number, line in enumerate(lines):
            if not torn and number == len(lines) - 1 and lacks_a_sector(line, self._read_bytes):
                torn = line
                break
            record = self._take(line)
            marked = record.digest if mark is not None and record.seq == mark.seq else marked
            yield record
        if torn and (whole := self._whole(torn)) is not None:
            torn = b""
            yield whole
        count = 0 if self.state is None else self.state.records
        check_mark(path, mark, count, marked)

    def _whole(self, line: bytes) -> Record | None:
        """The record on a line without its newline, if that is all that is missing."""
        try:
            record = self._take(line)
        except LedgerCorruptError:
            return None
        self._read_bytes = record.end - 1
        return record

    def _take(self, line: bytes) -> Record:
        assert self._reader is not None, "it is being read"
        state = self.state
        seq, previous = (0, "") if state is None else (state.records, state.head)
        record = self._reader.check(line, seq, self._read_bytes, previous)
        if state is None:
            self.state = begin(record)
        else:
            apply(state, record)
        self._last, self._read_bytes = record, record.end
        return record


def _rest(handle: int, offset: int) -> bytes:
    parts = []
    while part := os.pread(handle, 1 << 20, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)
