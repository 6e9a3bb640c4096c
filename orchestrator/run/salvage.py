"""Keep what a damaged or rolled back ledger still proves, in a directory of its own."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger import (
    LEDGER,
    LedgerCorruptError,
    Reader,
    Record,
    read_mark,
    records_lost,
    rolled_back,
    set_aside_command,
    take_lock,
)
from budgets.state import ImpossibleEventError, RunState, apply, begin
from budgets.storage import DISK, read_plain, write_aside


@dataclass(frozen=True)
class Saved:
    """What was kept, and what was lost."""

    out: Path
    records: int
    lost_records: int  # that are known of
    lost_bytes: int
    why: str


def salvage(source: Path, out: Path) -> Saved:
    """Copy the valid prefix of the ledger in `source`, and its evaluations' files, to `out`.

    The next session of the run settles what is open there. `source` is left as it is. Raises
    ValueError when there is nothing to save, or `out` exists; LedgerLockedError while `source` is
    in use.
    """
    if out.exists() or out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"--salvage: expected a new directory outside of {source}, got {out}")
    part = out.with_name(f"{out.name}.part")  # of an earlier salvage too that died half-way
    lock = take_lock(source)
    try:
        saved, data = _prefix(source, out)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        if (source / "eval").is_dir():
            shutil.copytree(source / "eval", part / "eval", symlinks=True)
        write_aside(part / LEDGER, data)
        part.rename(out)
        DISK.sync_directory(out.parent)
    finally:
        os.close(lock)
    return saved


def _prefix(source: Path, out: Path) -> tuple[Saved, bytes]:
    """The bytes of the whole records up to the first that cannot be believed, and what is lost."""
    path = source / LEDGER
    data, state, digests, end, why = read_plain(path), None, [], 0, ""
    reader = Reader(path, data)
    try:
        for record in reader:
            state = _after(state, record)
            digests.append(record.digest)
            end = record.end
    except (LedgerCorruptError, ImpossibleEventError) as error:
        why = str(error).removeprefix(f"{path}: ").partition(". Expected")[0]
    count, mark = len(digests), read_mark(path)
    if state is None:
        raise ValueError(
            f"{path} holds no whole record: nothing can be saved. Begin anew with: "
            f"{set_aside_command(source)}"
        )
    marked = digests[mark.seq] if mark is not None and 0 <= mark.seq < count else ""
    by_mark = records_lost(mark, count, marked)
    if by_mark and not why:
        why = rolled_back(path, by_mark, count).removeprefix(f"{path} ").partition(". Nothing")[0]
    if not why and not reader.torn:
        raise ValueError(f"{path} is whole: there is nothing to salvage. Repeat the run's command")
    rest = data[end:]
    lines = rest.count(b"\n") + (not rest.endswith(b"\n") and bool(rest))
    why = why or "its last line is unfinished"
    return Saved(out, count, max(lines, by_mark), len(rest), why), data[:end]


def _after(state: RunState | None, record: Record) -> RunState:
    if state is None:
        return begin(record)
    apply(state, record)
    return state
