"""`head.json`: what a ledger's last record was when it was last seen, to miss lost ones by."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson

from budgets.chain import salvage_command

HEAD = "head.json"


class Mark(NamedTuple):
    """The head of a ledger as `head.json` has last seen it."""

    seq: int
    digest: str


def read_mark(path: Path) -> Mark | None:
    """What `head.json` says of the ledger at `path`; None if it is not there or damaged."""
    try:
        mark = orjson.loads(path.with_name(HEAD).read_bytes())
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


def rolled_back(path: Path, missing: int) -> str:
    """What is wrong with a ledger that lacks `missing` records, and how to go on."""
    return (
        f"{path} is rolled back by {missing} records: {HEAD} has seen them, the ledger has not. "
        "Its end was cut off, or it is an older copy. Nothing was changed. Put the newer copy "
        f"back, or keep what there is with: {salvage_command(path)}"
    )
