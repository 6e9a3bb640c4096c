"""Copy what a damaged or rolled-back ledger still proves into a new directory."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger import LEDGER, LedgerCorruptError, marked, set_aside_command, take_lock
from budgets.state import ImpossibleEventError, apply, begin
from budgets.storage import DISK, read_plain, write_aside


@dataclass(frozen=True)
class Saved:
    """What was kept, and why not all."""

    out: Path
    records: int
    lost_bytes: int
    why: str


def salvage(source: Path, out: Path) -> Saved:
    """Copy the valid records at the start of the ledger, and the evaluations' files, to `out`.

    The run's next session settles what is still running by those files. `source` is not changed.
    Raises ValueError when there is nothing to save or `out` exists; LedgerLockedError while
    `source` is in use.
    """
    if out.exists() or out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"--salvage: expected a new directory outside of {source}, got {out}")
    part = out.with_name(f"{out.name}.part")  # an earlier salvage may have left one
    lock = take_lock(source)
    try:
        data = read_plain(source / LEDGER)
        records, end, why = _valid_start(source / LEDGER)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        if (source / "eval").is_dir():
            shutil.copytree(source / "eval", part / "eval", symlinks=True)
        write_aside(part / LEDGER, data[:end])
        part.rename(out)
        DISK.sync_directory(out.parent)
    finally:
        os.close(lock)
    return Saved(out, records, len(data) - end, why)


def _valid_start(path: Path) -> tuple[int, int, str]:
    """Return the records before the first that is damaged or cannot follow, their end, and why."""
    reader, why, state, end = marked(path), "", None, 0
    try:
        for record in reader:
            if state is None:
                state = begin(record)
            else:
                apply(state, record)
            end = record.end
    except (LedgerCorruptError, ImpossibleEventError) as error:
        why = str(error).removeprefix(f"{path}: ").partition(". ")[0]
    if state is None:
        begin_again = set_aside_command(path.parent)
        raise ValueError(f"{path} holds no whole record to save. Begin again with: {begin_again}")
    if not why and not reader.torn:
        raise ValueError(f"{path} is whole: there is nothing to salvage. Repeat the run's command")
    return state.records, end, why or "its last line is unfinished"
