"""A run's ledger on disk: an append-only file of sealed records, with one writer at a time.

A record is one line, `{"seq":0,"at":"...","elapsed_ms":0,"event":{...},"h":"<32 hex>"}`, where `h`
is the SHA-256 of the previous record's `h` followed by this line's bytes before `,"h"`. Appending
is one `write` and one `fsync`, so a crash leaves a chain of whole records and, at most, one torn
line at its end. Torn bytes are set aside, never deleted; damage anywhere else is refused with its
exact place. Any error of the disk while appending ends the process. See docs/reference.md.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import ValidationError

from budgets.events import SCHEMA, Event, Line
from budgets.formatting import command, shell_word
from budgets.storage import DISK, Storage, unused, write_all
from objectives.files import read_plain, replace

LEDGER, HEAD, LOCK = "ledger.jsonl", "head.json", "ledger.lock"

LEAST_FREE_BYTES = 8 << 20
"""With less free space no evaluation is started: its result might be lost."""

_SEAL_BYTES = 40


class LedgerCorruptError(Exception):
    """A ledger is not what was written: says what is wrong, where, and how to recover."""


class LedgerStorageError(Exception):
    """The disk refused a write; what it holds now is known only after reading it again."""


class LedgerLockedError(Exception):
    """Another process is writing to this ledger."""


def damaged(
    path: Path, why: str, remedy: str = "Restore the file from a backup"
) -> LedgerCorruptError:
    """The error for the ledger at `path`, with the ways out; `why` follows its name."""
    run = path.parent
    out = unused(run.with_name(f"{run.name}.salvaged"))
    return LedgerCorruptError(
        f"{path}{why}. Nothing was changed. {remedy}, or keep what there is with: "
        f"{command('verify', str(run), '--salvage', str(out))}"
    )


def set_aside_command(run: Path) -> str:
    """The command that moves a run's directory away, before its own command is repeated."""
    return move_command(run, unused(run.with_name(f"{run.name}.damaged")))


def move_command(there: Path, to: Path) -> str:
    """The command that moves a file or a directory, in one line to copy."""
    return f"mv {shell_word(str(there))} {shell_word(str(to))}"


# Records


class Place(NamedTuple):
    """Where a record goes: its number, its byte, and the digest of the one before it."""

    seq: int
    offset: int
    previous: str


class Record(NamedTuple):
    """One verified line: `digest` seals it and all before it, `end` is the byte after it."""

    seq: int
    at: str  # wall clock, ISO 8601
    elapsed_ms: int  # monotonic clock, since its session opened
    event: Event
    digest: str
    offset: int
    line: bytes  # without its newline

    @property
    def moment(self) -> datetime:
        """`at`, in UTC."""
        return datetime.fromtimestamp(datetime.fromisoformat(self.at).timestamp(), UTC)

    @property
    def at_ms(self) -> int:
        """`at` in milliseconds since 1970."""
        return round(1000 * self.moment.timestamp())

    @property
    def end(self) -> int:
        return self.offset + len(self.line) + 1

    @property
    def next(self) -> Place:
        return Place(self.seq + 1, self.end, self.digest)


def _sealed(previous: str, body: bytes) -> tuple[str, bytes]:
    """The digest and the line of a `body` after the record with digest `previous`."""
    digest = hashlib.sha256(previous.encode() + body).hexdigest()[:32]
    return digest, body + b',"h":"' + digest.encode() + b'"}'


def parse_record(path: Path, line: bytes, seq: int, offset: int, previous: str) -> Record:
    """The record in `line`, which follows the one with digest `previous`.

    Raises LedgerCorruptError, ValueError on another schema; `path` is for their messages.
    """

    def corrupt(why: str) -> LedgerCorruptError:
        return damaged(path, f": record {seq} at byte {offset}: {why}")

    digest, sealed = _sealed(previous, line[:-_SEAL_BYTES])
    if sealed != line:
        raise corrupt("its hash does not follow from the records before it")
    try:
        found = Line.model_validate_json(line[:-_SEAL_BYTES] + b"}")
    except ValidationError as error:
        first = error.errors()[0]
        if "schema_version" in first["loc"]:
            raise ValueError(
                f"{path} was written with ledger schema {first['input']}; this version reads "
                f"schema {SCHEMA}. Use the version that wrote it"
            ) from error
        place = ".".join(map(str, first["loc"]))
        raise corrupt(f"no event of schema {SCHEMA}: {place} {first['msg']}") from error
    if found.seq != seq:
        raise corrupt(f"it says it is number {found.seq}")
    return Record(seq, found.at, found.elapsed_ms, found.event, digest, offset, line)


# Reading, and the head beside the ledger by which lost records are missed


class Reader:
    """Iterates once over the records of the file at `path`, verifying each.

    A last line without its newline was never finished, nor was one with bytes of 0: sectors arrive
    in any order after a power cut. Raises LedgerCorruptError with the exact place, also where
    `head.json` has seen records that are missing, if it is `marked`; ValueError; OSError.
    """

    def __init__(self, path: Path, *, marked: bool = True) -> None:
        self._path, self._mark = path, _mark(path) if marked else None
        self._data = read_plain(path)  # after the mark: its writer may change both
        self.next = Place(0, 0, "")  # after the last record that was read

    @property
    def torn(self) -> bytes:
        """What follows the records: one that was never finished."""
        return self._data[self.next.offset :]

    def __iter__(self) -> Iterator[Record]:
        data, seen = self._data, self._mark is None
        while (newline := data.find(b"\n", self.next.offset)) >= 0:
            line = data[self.next.offset : newline]
            if newline == len(data) - 1 and b"\0" in line:
                break
            record = parse_record(self._path, line, *self.next)
            self.next = record.next
            seen |= (record.seq, record.digest) == self._mark
            yield record
        if not seen:
            why = f" is rolled back: {HEAD} has seen records that it lacks"
            raise damaged(self._path, why, "Put the newer copy back")


def _mark(path: Path) -> tuple[int, str] | None:
    """Number and digest of the last record when its writer closed the ledger."""
    with suppress(OSError, ValueError, KeyError, TypeError):  # it only repeats the ledger
        said = orjson.loads(read_plain(path.with_name(HEAD)))
        return (int(said["seq"]), str(said["h"])) if said["seq"] >= 0 else None
    return None


def read(path: Path) -> tuple[Record, ...]:
    """Every record of the file at `path`, whatever `head.json` says. Raises as `Reader` does."""
    return tuple(Reader(path, marked=False))


# The lock: `flock` on a file that is never removed; the kernel releases it


def take_lock(directory: Path) -> int:
    """A descriptor that holds the directory's lock until it is closed.

    Raises LedgerLockedError with its holder; OSError when the directory cannot be written to.
    """
    path = directory / LOCK
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(lock, 200, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise LedgerLockedError(
            f"another orchestrator is running in {directory} ({owner}). Look at it with: "
            f"{command('status', str(directory))}"
        ) from error
    since = datetime.now(UTC).isoformat(timespec="seconds")
    owner = f"host {os.uname().nodename}, pid {os.getpid()}, since {since}"
    with suppress(OSError):  # a full disk: the text is only for people
        os.ftruncate(lock, 0)
        os.pwrite(lock, owner.encode(), 0)
    return lock


# The writer


@dataclass(frozen=True, slots=True)
class Clock:
    """Injected time: `monotonic` in seconds, `now` for people and deadlines."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]


SYSTEM_CLOCK = Clock(time.monotonic, partial(datetime.now, UTC))


class Ledger(AbstractContextManager["Ledger"]):
    """The single writer of a run's ledger: `replay` before `append`.

    Raises LedgerLockedError when another process has it, LedgerStorageError when the disk fails.
    """

    def __init__(self, directory: Path, clock: Clock, storage: Storage = DISK) -> None:
        self.path = directory.absolute() / LEDGER
        self.repair = ""  # what opening repaired, in words
        self._next: Place | None = None  # None until replayed, and after a failure
        self._clock = clock
        self._storage = storage
        self._opened = clock.monotonic()
        self._file = self._lock = -1
        try:
            self._lock = take_lock(directory)
            self._file = storage.open(self.path)
            storage.sync_directory(directory)
        except BaseException as error:
            self.close()
            if not isinstance(error, OSError):  # an interrupt, in a process that may go on
                raise
            where = error.filename or directory
            raise LedgerStorageError(f"cannot write to {where}: {error.strerror}") from error

    def replay(self) -> Iterator[Record]:
        """Verify and yield every record, then repair the end and make ready to append.

        Raises as `Reader` before anything is changed; LedgerStorageError.
        """
        yield from (reader := Reader(self.path))
        end, torn = reader.next.offset, reader.torn
        if torn:  # the file ends after its last whole record, and every byte is kept
            aside = unused(self.path.with_name(f"ledger.torn-{end}"))
            try:
                self._keep(aside, torn)
                self._storage.truncate(self._file, end)
                self._storage.sync(self._file)
            except OSError as error:
                where = error.filename or self.path
                raise LedgerStorageError(f"cannot repair {where}: {error.strerror}") from error
            self.repair = f"an unfinished line of {len(torn)} bytes is now {aside.name}"
        self._next = reader.next

    def _keep(self, aside: Path, torn: bytes) -> None:
        """Write the torn bytes to a new file, durably."""
        handle = self._storage.open(aside)
        try:
            write_all(handle, torn, self._storage)
            self._storage.sync(handle)
        finally:
            os.close(handle)
        self._storage.sync_directory(aside.parent)

    def free_bytes(self) -> int:
        """Free space on the run's disk; below LEAST_FREE_BYTES no evaluation may start."""
        return self._storage.free_bytes(self.path.parent)

    def seal(self, event: Event) -> Record:
        """The record that `append` would write now. Nothing is written yet."""
        if (place := self._next) is None:
            raise LedgerStorageError(f"{self.path} takes no record before it was read again")
        record = {
            "seq": place.seq,
            "at": self._clock.now().isoformat(timespec="milliseconds"),
            "elapsed_ms": round(1000 * (self._clock.monotonic() - self._opened)),
            "event": event.model_dump(),
        }
        _, line = _sealed(place.previous, orjson.dumps(record)[:-1])
        return parse_record(self.path, line, *place)

    def append(self, record: Record) -> None:
        """Put the sealed `record` on disk; it counts from the moment this returns.

        A record that could not be synced is truncated: no later sync would bring it to the disk.
        """
        end = record.offset
        assert self._next is not None, "nothing failed since it was sealed"
        self._next = None  # until it is known that nothing failed
        try:
            there, mine = os.stat(self.path), os.fstat(self._file)
            if not os.path.samestat(there, mine) or mine.st_size != end:
                raise LedgerCorruptError(
                    f"{self.path} was changed by another process while this run had it. Nothing "
                    f"was written. See: {command('verify', str(self.path.parent))}"
                )
            write_all(self._file, record.line + b"\n", self._storage)
            self._storage.sync(self._file)
        except OSError as error:
            with suppress(OSError):
                self._storage.truncate(self._file, end)
            raise LedgerStorageError(
                f"cannot append to {self.path}: {error.strerror}. What was written before is safe"
            ) from error
        self._next = record.next

    def close(self) -> None:
        """Write `head.json`; release the file and the lock."""
        try:
            if self._next is not None and self._next.seq:
                mark = orjson.dumps({"seq": self._next.seq - 1, "h": self._next.previous}) + b"\n"
                with suppress(OSError):  # it only repeats what the ledger says
                    replace(self.path.with_name(HEAD), mark)
        finally:
            handles = [handle for handle in (self._lock, self._file) if handle >= 0]
            self._file, self._lock, self._next = -1, -1, None
            for handle in handles:
                with suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_UN)  # also for children forked with the lock
                    os.close(handle)

    def __exit__(self, *_: object) -> None:
        self.close()
