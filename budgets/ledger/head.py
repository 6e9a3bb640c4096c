"""`head.json`: what a ledger's last record was when it was last seen, to miss lost ones by."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from budgets.ledger.chain import LedgerCorruptError, Reader, Record, way_to_keep
from budgets.ledger.storage import read_plain

HEAD = "head.json"


class Mark(NamedTuple):
    """The head of a ledger as `head.json` has last seen it."""

    seq: int
    digest: str


class LedgerRolledBackError(LedgerCorruptError):
    """The ledger is an older copy of itself, or its end was cut off."""


_COMPUTED = re.compile(
    rb'.{,99}"event":\{"kind":'
    rb'"(opened|generation_asked|reserved|settled|generation_told|fired|concluded)"'
)
"""The beginning of a record that is known without it: from its plan, or from the files in eval/."""


class Marked:
    """Iterates over a ledger's records as `Reader` does, and misses those `head.json` has seen.

    Then raises LedgerRolledBackError. One marked record may be torn: if it says nothing that is
    not known without it, nothing is lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = read_mark(path)  # before the ledger: somebody may be writing to both
        self.reader = Reader(path, read_plain(path))

    def __iter__(self) -> Iterator[Record]:
        mark, marked = self._mark, ""
        for record in self.reader:
            if mark is not None and record.seq == mark.seq:
                marked = record.digest
            yield record
        check_mark(self._path, mark, self.reader.count, marked, self.reader.torn)


def check_mark(path: Path, mark: Mark | None, count: int, digest: str, torn: bytes) -> None:
    """Raises LedgerRolledBackError where `count` records and a torn one are not all that is marked.

    `digest` is that of the record with the mark's number.
    """
    if mark is None or (mark.seq == count and _COMPUTED.match(torn)):
        return
    if missing := lost(count, mark, digest):
        raise LedgerRolledBackError(rolled_back(path, missing, count))


def read_mark(path: Path) -> Mark | None:
    """What `head.json` says of the ledger at `path`; None if it is not there or damaged."""
    try:
        mark = orjson.loads(read_plain(path.with_name(HEAD)))
        return Mark(int(mark["seq"]), str(mark["h"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it only ever repeats what the ledger said


def records_lost(path: Path, count: int, digest_of: Callable[[int], str]) -> int:
    """How many records a ledger of `count` records lacks by its `head.json`; 0 when none.

    A ledger that has the marked number of records, but other ones, lacks them all.
    """
    mark = read_mark(path)
    if mark is None or mark.seq < 0:
        return 0
    return lost(count, mark, digest_of(mark.seq) if mark.seq < count else "")


def lost(count: int, mark: Mark, digest: str) -> int:
    """How many records `count` is short of the mark; all of the marked if `digest` is not its."""
    if mark.seq >= count:
        return mark.seq + 1 - count
    return 0 if digest == mark.digest else mark.seq + 1


def rolled_back(path: Path, missing: int, kept: int) -> str:
    """What is wrong with a ledger of `kept` records that lacks `missing`, and how to go on."""
    return (
        f"{path} is rolled back by {missing} records: {HEAD} has seen them, the ledger has not. "
        "Its end was cut off, or it is an older copy. Nothing was changed. Put the newer copy "
        f"back, or {way_to_keep(path, kept)}"
    )
