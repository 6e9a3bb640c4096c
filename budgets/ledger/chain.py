"""A ledger's records as bytes: one sealed line each, and what a file of them says.

`{"seq":0,"at":"...","elapsed_ms":0,"event":{...},"h":"<32 hex>"}`, where `h` is the SHA-256 of the
previous record's `h` followed by this line's bytes before `,"h"`. Reading verifies every byte and
changes nothing. See docs/ledger.md.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import ValidationError

from budgets.events import SCHEMA, Event, Planned, fields
from budgets.formatting import command, move_command
from budgets.ledger.storage import read_plain, unused
from budgets.ledger.upcast import upcast

LEDGER = "ledger.jsonl"

_SEAL = re.compile(rb',"h":"[0-9a-f]{32}"}')
_SEAL_BYTES = 40
_SECTOR = 512  # bytes that a disk writes whole or not at all
_BODY = re.compile(
    rb'\{"seq":(\d{1,15}),"at":"(\d{4}-\d\d-\d\dT[\d:.]{5,18}[+-]\d\d:\d\d)",'
    rb'"elapsed_ms":(\d{1,15}),"event":(\{.*\})',
    re.DOTALL,
)


class LedgerCorruptError(Exception):
    """A ledger is not what was written: says what is wrong, where, and how to go on."""


class RecordCorruptError(LedgerCorruptError):
    """One of its records is not what was written."""

    def __init__(self, path: Path, record: int, offset: int, why: str) -> None:
        super().__init__(
            f"{path}: record {record} at byte {offset}: {why}. Expected an unbroken chain of "
            f"records. Nothing was changed. Restore the file from a backup, or "
            f"{way_to_keep(path, record)}"
        )
        self.record = record
        self.offset = offset


class LedgerTooNewError(ValueError):
    """A ledger was written by a later version of this program."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path} {what}; this version reads up to schema {SCHEMA}. Upgrade with: "
            "pip install --upgrade cmaes-orchestrator"
        )


def way_to_keep(path: Path, records: int) -> str:
    """What to do with a ledger of which so many records are whole."""
    run = path.parent
    if records == 0:
        return f"begin anew, since nothing of it can be kept, with: {set_aside_command(run)}"
    out = unused(run.with_name(f"{run.name}.salvaged"))
    salvage = command("verify", str(run), "--salvage", str(out))
    return f"keep what there is with: {salvage}"


def set_aside_command(run: Path) -> str:
    """What moves a run's directory away, before its own command is repeated."""
    return f"{move_command(run, damaged(run))}, then the same command again"


def damaged(run: Path) -> Path:
    """Where a run's directory is moved aside to."""
    return unused(run.with_name(f"{run.name}.damaged"))


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
    def end(self) -> int:
        return self.offset + len(self.line) + 1


def make_record(  # noqa: PLR0913 - a record's fields
    event: Event, *, seq: int, at: datetime, elapsed_ms: int, offset: int, previous: str
) -> Record:
    """The record of `event` that follows the one with digest `previous`, at byte `offset`.

    Raises RecordCorruptError if it could not be read back.
    """
    record = {
        "seq": seq,
        "at": at.isoformat(timespec="milliseconds"),
        "elapsed_ms": elapsed_ms,
        "event": fields(event),
    }
    body = orjson.dumps(record)[:-1]
    line = body + _seal(digest_of(previous, body))
    return Reader(Path(LEDGER), b"").check(line, seq, offset, previous)


def lacks_a_sector(line: bytes, offset: int) -> bool:
    """Whether a sector under this line, at byte `offset`, never reached the disk: all zeros.

    Sectors arrive in any order, so of a record that was not synced when the power went the end may
    be there without the middle (etcd-io/etcd `server/storage/wal/decoder.go`, isTornEntry).
    """
    edges = [0, *range(_SECTOR - offset % _SECTOR, len(line), _SECTOR), len(line)]
    return bool(line) and any(not line[a:b].strip(b"\0") for a, b in pairwise(edges))


def digest_of(previous: str, body: bytes) -> str:
    """What seals a line with this `body` after the record with digest `previous`."""
    return hashlib.sha256(previous.encode() + body).hexdigest()[:32]


def _seal(digest: str) -> bytes:
    return b',"h":"' + digest.encode() + b'"}'


class Reader:
    """Iterates once over the records in `data`, verifying each; then knows where they end.

    A last line without its newline counts as a record if it is whole; one with a sector missing
    was never finished. `path` is for messages.
    Iterating raises LedgerCorruptError with the exact place, LedgerTooNewError on a newer schema.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        self.count = 0
        self.head = ""  # digest of the last record
        self.end = 0  # byte after it, and after its newline, be that there or not
        self.torn = b""  # what follows: a record that was never finished
        self._path = path
        self._data = data
        self._schema = SCHEMA

    def __iter__(self) -> Iterator[Record]:
        data = self._data
        while (newline := data.find(b"\n", self.end)) >= 0:
            line = data[self.end : newline]
            if newline == len(data) - 1 and lacks_a_sector(line, self.end):
                break
            record = self.check(line, self.count, self.end, self.head)
            self.count, self.head, self.end = self.count + 1, record.digest, newline + 1
            yield record
        self.torn = data[self.end :]
        if seal := _SEAL.search(self.torn):  # only the newline is missing or damaged
            line, rest = self.torn[: seal.end()], self.torn[seal.end() :]
            with suppress(LedgerCorruptError):
                record = self.check(line, self.count, self.end, self.head)
                self.torn = rest
                self.count, self.head, self.end = self.count + 1, record.digest, record.end
                yield record

    def check(self, line: bytes, seq: int, offset: int, previous: str) -> Record:
        """The record in `line`, which is to follow the one with digest `previous`."""
        body, seal = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:]
        digest = digest_of(previous, body)
        if seal != _seal(digest):
            why = "its hash does not follow from the records before it"
            if not _SEAL.fullmatch(seal):
                why = "not a sealed record"
            raise RecordCorruptError(self._path, seq, offset, why)
        found = _BODY.fullmatch(body)
        if found is None:
            why = f"sealed, but no event of schema {SCHEMA}: not the fields of a record"
            raise RecordCorruptError(self._path, seq, offset, why)
        number, at, elapsed_ms, event = found.groups()
        if int(number) != seq:
            raise RecordCorruptError(self._path, seq, offset, f"it says it is number {int(number)}")
        known = self._event(event, seq, offset)
        return Record(seq, at.decode(), int(elapsed_ms), known, digest, offset, line)

    def _event(self, data: bytes, seq: int, offset: int) -> Event:
        try:
            if seq == 0 or data.startswith(b'{"kind":"opened"'):
                self._schema = self._version(data)
            event = upcast(data, self._schema)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "union_tag_invalid":
                kind = first["ctx"]["tag"]
                what = f"has a record of kind {kind!r} (record {seq} at byte {offset})"
                raise LedgerTooNewError(self._path, what) from error
            place = ".".join(map(str, first["loc"]))
            why = f"sealed, but no event of schema {self._schema}: {place} {first['msg']}"
            raise RecordCorruptError(self._path, seq, offset, why) from error
        if seq == 0 and not isinstance(event, Planned):
            raise RecordCorruptError(self._path, seq, offset, "the first record is no plan")
        return event

    def _version(self, data: bytes) -> int:
        """The schema of this record and of those that its session writes."""
        said = orjson.loads(data) if data.startswith(b'{"kind":') else {}
        version = said.get("schema_version", 1)
        if not isinstance(version, int) or version < 1 or version > SCHEMA:
            raise LedgerTooNewError(self._path, f"was written with ledger schema {version}")
        return version


class Reading(NamedTuple):
    """A ledger's whole records, and the bytes of an unfinished one after them."""

    records: tuple[Record, ...]
    torn: bytes


def read(path: Path) -> Reading:
    """Every record of the file at `path`, verified. Changes nothing.

    Raises as `Reader` does; FileNotFoundError.
    """
    reader = Reader(path, read_plain(path))
    return Reading(tuple(reader), reader.torn)
