"""The single writer of a run's ledger, the append-only file everything else is computed from.

A record is one `write` and one `fsync`, so after a crash the file is a chain of whole records and,
at most, one torn line at its end. The torn bytes are set aside, never deleted; damage anywhere else
is refused with its exact place. See docs/ledger.md.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import orjson

from budgets.events import Event
from budgets.formatting import command, in_bytes
from budgets.ledger.chain import (
    LEDGER,
    LedgerCorruptError,
    Reader,
    Record,
    make_record,
)
from budgets.ledger.head import HEAD, Marked
from budgets.ledger.lock import give_back, take_lock
from budgets.ledger.storage import DISK, FULL, Storage, unused, write_all, write_aside

BALLAST = "ledger.ballast"

BALLAST_BYTES = 1 << 20
"""Given up when the disk is full: room to settle what runs and to say why nothing more starts."""

LEAST_FREE_BYTES = 8 * BALLAST_BYTES
"""Without so much room beside the ballast no evaluation is started: its result might be lost."""


class LedgerStorageError(Exception):
    """The disk refused a write; what it holds now is known only after reading it again."""


class LedgerChangedError(LedgerCorruptError):
    """Somebody else wrote to the ledger while this process had it."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Injected time: `monotonic` in seconds, `now` for people and deadlines."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]


class Ledger:
    """The single writer of a run's ledger. Use as a context manager; `replay` before `append`.

    Raises LedgerLockedError when another process has it, LedgerStorageError when the disk fails
    (fatal: what reached it is known only after reading again), and what `replay` raises.
    """

    def __init__(self, directory: Path, clock: Clock, storage: Storage = DISK) -> None:
        self.path = directory.absolute() / LEDGER
        self.repairs: tuple[str, ...] = ()  # for people: what opening had to mend
        self.head = ""  # digest of the last record: it seals everything before it
        self.count = 0
        self._end: int | None = None  # bytes; None until replayed, and after a failure
        self._clock = clock
        self._storage = storage
        self._opened = clock.monotonic()
        self._file = self._lock = -1
        try:
            self._lock = take_lock(directory)
            self._file = storage.open(self.path)
            storage.sync_directory(directory)
        except OSError as error:
            self.close()
            raise LedgerStorageError(
                f"cannot write to {error.filename or directory}: {error.strerror}. Nothing was "
                "started"
            ) from error
        except BaseException:  # an interrupt, in a process that may go on
            self.close()
            raise

    def replay(self) -> Iterator[Record]:
        """Verify and yield every record, then mend the end and make ready to append.

        Raises LedgerCorruptError, LedgerRolledBackError or LedgerTooNewError before anything is
        changed, LedgerStorageError.
        """
        marked = Marked(self.path)
        yield from marked
        reader = marked.reader
        try:
            self._mend(reader)
            self._take_ballast()
        except OSError as error:
            where = error.filename or self.path
            raise LedgerStorageError(f"cannot mend {where}: {error.strerror}") from error
        self.head, self.count, self._end = reader.head, reader.count, reader.end

    def _mend(self, reader: Reader) -> None:
        """Make the file end after its last whole record, keeping every byte."""
        storage, repairs = self._storage, []
        if reader.torn:
            aside = unused(self.path.with_name(f"ledger.torn-{reader.end}"))
            write_aside(aside, reader.torn, storage=storage)
            repairs.append(f"an unfinished line of {len(reader.torn)} bytes is now {aside.name}")
        if reader.end and os.pread(self._file, 1, reader.end - 1) != b"\n":
            repairs.append("the last line had lost its newline")
            storage.truncate(self._file, reader.end - 1)
            write_all(self._file, b"\n", storage)
        elif repairs:
            storage.truncate(self._file, reader.end)
        if repairs:
            storage.sync(self._file)
        self.repairs = tuple(repairs)

    def _take_ballast(self) -> None:
        ballast = self.path.with_name(BALLAST)
        if not ballast.exists() or ballast.stat().st_size < BALLAST_BYTES:
            self._needs_room(BALLAST_BYTES + LEAST_FREE_BYTES)
            write_aside(ballast, os.urandom(BALLAST_BYTES), storage=self._storage)

    def _needs_room(self, needed: int) -> None:
        free = self._storage.free_bytes(self.path.parent)
        if free < needed:
            raise LedgerStorageError(
                f"the disk of {self.path.parent} is full: {in_bytes(needed)} are needed to "
                f"begin, {in_bytes(free)} are free. Make room and repeat the command; "
                "nothing paid is lost"
            )

    def room(self) -> str:
        """Why the disk allows no further evaluation; empty when it does."""
        free = self._storage.free_bytes(self.path.parent)
        if self.path.with_name(BALLAST).exists() and free >= LEAST_FREE_BYTES:
            return ""
        return (
            f"the run's disk is full ({in_bytes(free)} free, "
            f"{in_bytes(LEAST_FREE_BYTES)} needed to start an evaluation); make room and repeat "
            "the command"
        )

    def seal(self, event: Event) -> Record:
        """The record that `append` would write now. Nothing is written yet."""
        return make_record(
            event,
            seq=self.count,
            at=self._clock.now(),
            elapsed_ms=round(1000 * (self._clock.monotonic() - self._opened)),
            offset=self._require_end(),
            previous=self.head,
        )

    def give_up_ballast(self) -> None:
        """Leave nothing behind that only a run in progress needs."""
        with suppress(OSError):
            self._storage.remove(self.path.with_name(BALLAST))

    def append(self, record: Record) -> None:
        """Put the sealed `record` on disk; it counts from the moment this returns.

        On a full disk the ballast is given up first: `room` says so from then on.
        """
        end = self._require_end()
        if record.seq != self.count or record.offset != end:
            raise ValueError(f"record {record.seq} was sealed for another place in the ledger")
        self._end = None  # until it is known that nothing failed
        try:
            self._refuse_another_writer(end)
            self._write(record.line + b"\n", end)
            self._sync(end)
        except OSError as error:
            raise LedgerStorageError(
                f"cannot append to {self.path}: {error.strerror}. What was acknowledged before is "
                "safe. Mend the disk and repeat the command"
            ) from error
        self.head, self.count, self._end = record.digest, record.seq + 1, record.end
        self.mark_head(durable=False)

    def _write(self, line: bytes, end: int) -> None:
        try:
            write_all(self._file, line, self._storage)
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._storage.truncate(self._file, end)
            self._storage.remove(self.path.with_name(BALLAST))
            write_all(self._file, line, self._storage)

    def _sync(self, end: int) -> None:
        try:
            self._storage.sync(self._file)
        except OSError:  # the system shows the record, and no later sync brings it to the disk
            with suppress(OSError):
                self._storage.truncate(self._file, end)
            raise

    def _refuse_another_writer(self, end: int) -> None:
        mine, there = os.fstat(self._file), os.stat(self.path)
        if not os.path.samestat(there, mine) or mine.st_size != end:
            found = "another file" if mine.st_size == end else f"{mine.st_size} bytes"
            raise LedgerChangedError(
                f"{self.path} was changed by somebody else while this run had it: expected its own "
                f"{end} bytes, found {found}. Nothing was written over. See what holds with: "
                f"{command('ledger', 'verify', str(self.path.parent))}"
            )

    def _require_end(self) -> int:
        if self._end is None:
            raise LedgerStorageError(
                f"{self.path} takes no record before it was read (again): open it anew"
            )
        return self._end

    def mark_head(self, *, durable: bool = True) -> None:
        """Note the head beside the ledger: a ledger behind it has lost records."""
        mark = orjson.dumps({"seq": self.count - 1, "h": self.head}) + b"\n"
        with suppress(OSError):  # it only repeats what the ledger says
            write_aside(self.path.with_name(HEAD), mark, durable=durable, storage=self._storage)

    def close(self) -> None:
        """Give the file and the lock back; closing twice is harmless."""
        if self._lock >= 0:
            give_back(self._lock)
        for handle in (self._file, self._lock):
            with suppress(OSError):
                os.close(handle)
        self._file = self._lock = -1
        self._end = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
