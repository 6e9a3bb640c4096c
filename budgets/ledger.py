"""The append-only file everything else is computed from.

One line a record: `{"seq":0,"at":"...","elapsed_ms":0,"event":{...},"h":"<32 hex>"}`, where `h` is
the SHA-256 of the previous record's `h` followed by this line's bytes before `,"h"`. A record is
one `write` and one `fsync`, so after a crash the file is a chain of whole records and, at most, one
torn line at its end. The torn bytes are set aside, never deleted; damage anywhere else is refused
with its exact place. See docs/ledger.md.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Self

import orjson
from pydantic import ValidationError

from budgets.storage import sync_directory, write_aside
from budgets.events import SCHEMA, Event, Planned, parse

LEDGER = "ledger.jsonl"
HEAD = "head.json"
LOCK = "ledger.lock"

_SEAL = re.compile(rb',"h":"([0-9a-f]{32})"}')
_SEAL_BYTES = 40


class LedgerCorruptError(Exception):
    """A record is not what was written: says which, where and why."""

    def __init__(self, path: Path, record: int, offset: int, why: str) -> None:
        super().__init__(
            f"{path}: record {record} at byte {offset}: {why}. Expected an unbroken chain of "
            f"records. Nothing was changed. Restore the file from a backup, or keep the first "
            f"{offset} bytes (records before {record}) in a new run directory."
        )
        self.record = record
        self.offset = offset


class LedgerLockedError(Exception):
    """Another process is writing to this ledger."""


class LedgerStorageError(Exception):
    """The disk refused a write; what it holds now is known only after reading it again."""


@dataclass(frozen=True, slots=True)
class Record:
    """One verified line: `digest` seals it and all before it, `end` is the byte after it."""

    seq: int
    at: str
    elapsed_ms: int
    event: Event
    digest: str
    offset: int
    line: bytes  # without its newline

    @property
    def end(self) -> int:
        return self.offset + len(self.line) + 1


def _seal(previous: str, body: bytes) -> str:
    return hashlib.sha256(previous.encode() + body).hexdigest()[:32]


def _check(path: Path, line: bytes, seq: int, offset: int, previous: str) -> Record:
    """The record in `line` (without its newline). Raises LedgerCorruptError."""
    match = _SEAL.fullmatch(line, max(0, len(line) - _SEAL_BYTES))
    if match is None:
        raise LedgerCorruptError(path, seq, offset, "not a sealed record")
    body, digest = line[: match.start()], match.group(1).decode()
    if _seal(previous, body) != digest:
        raise LedgerCorruptError(
            path, seq, offset, "its hash does not follow from the records before it"
        )
    try:
        fields = orjson.loads(line)
        if fields["seq"] != seq:
            raise LedgerCorruptError(path, seq, offset, f"it says it is number {fields['seq']}")
        if seq == 0 and fields["event"].get("schema_version", 0) > SCHEMA:
            version = fields["event"]["schema_version"]
            raise ValueError(
                f"{path} was written with ledger schema {version}; this version reads up to "
                f"{SCHEMA}. Upgrade with: pip install --upgrade cmaes-orchestrator"
            )
        event = parse(fields["event"])
        return Record(seq, fields["at"], fields["elapsed_ms"], event, digest, offset, line)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValidationError) as error:
        why = f"sealed, but no event of schema {SCHEMA}: {str(error).splitlines()[0]}"
        raise LedgerCorruptError(path, seq, offset, why) from error


@dataclass(frozen=True, slots=True)
class Reading:
    """A ledger's whole records, and the bytes of an unfinished one after them."""

    records: tuple[Record, ...]
    torn: bytes


def read(path: Path) -> Reading:
    """Verify every record of the file at `path`, changing nothing.

    Raises LedgerCorruptError with the exact place; ValueError on a newer schema;
    FileNotFoundError. A last line without its newline counts as a record if it is whole.
    """
    data = path.read_bytes()
    records: list[Record] = []
    offset, previous = 0, ""
    while (newline := data.find(b"\n", offset)) >= 0:
        record = _check(path, data[offset:newline], len(records), offset, previous)
        records.append(record)
        offset, previous = record.end, record.digest
    torn = data[offset:]
    if seal := _SEAL.search(torn):  # only the newline is missing or damaged
        with suppress(LedgerCorruptError):
            records.append(_check(path, torn[: seal.end()], len(records), offset, previous))
            torn = torn[seal.end() :]
    if records and not isinstance(records[0].event, Planned):
        raise LedgerCorruptError(path, 0, 0, "the first record is no plan")
    return Reading(tuple(records), torn)


def _unused(path: Path) -> Path:
    """`path`, or `path` with the first number that no file has yet."""
    later = (path.with_name(f"{path.name}.{number}") for number in count(2))
    return next(p for p in chain([path], later) if not p.exists())


@dataclass(frozen=True, slots=True)
class Clock:
    """Injected time: `monotonic` in seconds, `now` for people."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]


class Ledger:
    """The single writer of a run's ledger. Use as a context manager.

    Raises LedgerLockedError when another process has it, LedgerStorageError when the disk fails
    (fatal: what reached it is known only after reading again), LedgerCorruptError on opening.
    """

    def __init__(self, directory: Path, clock: Clock) -> None:
        self.path = directory.absolute() / LEDGER
        self.repairs: tuple[str, ...] = ()  # for people: what opening had to mend
        self._clock = clock
        self._opened = clock.monotonic()
        self._lock = self._take_lock(directory / LOCK)
        try:
            created = not self.path.exists()
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self.path, flags, 0o644)
            if created:
                sync_directory(directory)
        except OSError as error:
            os.close(self._lock)
            raise LedgerStorageError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            reading = read(self.path)
            self.records = list(reading.records)
            self._end = reading.records[-1].end if reading.records else 0
            self._mend(reading)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _take_lock(path: Path) -> int:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise LedgerStorageError(f"cannot write to {path.parent}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(lock, 200, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise LedgerLockedError(
                f"another orchestrator is running in {path.parent} ({owner}). "
                f"Look at it with: orchestrator status {path.parent}"
            ) from error
        os.ftruncate(lock, 0)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        os.pwrite(
            lock, f"host {os.uname().nodename}, pid {os.getpid()}, since {started}".encode(), 0
        )
        return lock

    def _mend(self, reading: Reading) -> None:
        """Make the file end after its last whole record, keeping every byte."""
        repairs = []
        if reading.torn:
            aside = _unused(self.path.with_name(f"ledger.torn-{self._end}"))
            write_aside(aside, reading.torn)
            repairs.append(f"an unfinished line of {len(reading.torn)} bytes is now {aside.name}")
            os.ftruncate(self._file, self._end)
        if self._end and os.pread(self._file, 1, self._end - 1) != b"\n":
            os.ftruncate(self._file, self._end - 1)
            os.write(self._file, b"\n")
            repairs.append("the last line had lost its newline")
        if repairs:
            os.fsync(self._file)
        self.repairs = tuple(repairs)

    @property
    def head(self) -> str:
        """The last record's hash: it seals everything before it. Empty for an empty ledger."""
        return self.records[-1].digest if self.records else ""

    def seal(self, event: Event) -> Record:
        """The record that `append` would write now. Nothing is written yet."""
        seq = len(self.records)
        body = orjson.dumps(
            {
                "seq": seq,
                "at": self._clock.now().isoformat(timespec="milliseconds"),
                "elapsed_ms": round(1000 * (self._clock.monotonic() - self._opened)),
                "event": event.model_dump(),
            }
        )[:-1]
        line = body + b',"h":"' + _seal(self.head, body).encode() + b'"}'
        return _check(self.path, line, seq, self._end, self.head)

    def append(self, record: Record) -> None:
        """Put the sealed `record` on disk; it counts from the moment this returns."""
        if record.seq != len(self.records) or record.offset != self._end:
            raise ValueError(f"record {record.seq} was sealed for another place in the ledger")
        self._write(record.line + b"\n")
        self._end = record.end
        self.records.append(record)

    def _write(self, line: bytes) -> None:
        try:
            there, mine = os.stat(self.path), os.fstat(self._file)
            if not os.path.samestat(there, mine) or mine.st_size != self._end:
                raise LedgerStorageError(f"{self.path} was changed by somebody else while it ran")
            written = os.write(self._file, line)
            if written != len(line):
                raise LedgerStorageError(f"{self.path}: only {written} of {len(line)} bytes fit")
            os.fsync(self._file)
        except OSError as error:
            raise LedgerStorageError(f"cannot append to {self.path}: {error.strerror}") from error

    def mark_head(self) -> None:
        """Note the head beside the ledger: a ledger behind it has lost records."""
        mark = {"seq": len(self.records) - 1, "h": self.head}
        write_aside(self.path.with_name(HEAD), orjson.dumps(mark) + b"\n")

    def close(self) -> None:
        """Give the file and the lock back; closing twice is harmless."""
        for handle in (self._file, self._lock):
            with suppress(OSError):
                os.close(handle)
        self._file = self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def records_lost(path: Path, records: Sequence[Record]) -> int | None:
    """How many records the ledger at `path` lacks by its `head.json`; None when it lacks none.

    A ledger that has the marked number of records, but other ones, lacks them all.
    """
    try:
        mark = orjson.loads(path.with_name(HEAD).read_bytes())
        seq, digest = int(mark["seq"]), mark["h"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # it only ever repeats what the ledger said
    if seq >= len(records):
        return seq + 1 - len(records)
    return None if records[seq].digest == digest else seq + 1
