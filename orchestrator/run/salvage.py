"""Copy what a damaged or rolled-back ledger still proves into a new directory."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger import LEDGER, LedgerCorruptError, marked, set_aside_command, take_lock
from budgets.state import ImpossibleEventError, RunState, apply, begin
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
        saved, data = _valid_start(source, out)
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


def _valid_start(source: Path, out: Path) -> tuple[Saved, bytes]:
    """Return the bytes of all records before the first one that is damaged or cannot follow."""
    path = source / LEDGER
    data, reader, why = read_plain(path), marked(path), ""
    state: RunState | None = None
    records = end = 0
    try:
        for record in reader:
            if state is None:
                state = begin(record)
            else:
                apply(state, record)
            records, end = records + 1, record.end
    except (LedgerCorruptError, ImpossibleEventError) as error:
        why = str(error).removeprefix(f"{path}: ").partition(". ")[0]
    if state is None:
        raise ValueError(
            f"{path} holds no whole record: nothing can be saved. Begin anew with: "
            f"{set_aside_command(source)}"
        )
    if not why and not reader.torn:
        raise ValueError(f"{path} is whole: there is nothing to salvage. Repeat the run's command")
    return Saved(out, records, len(data) - end, why or "its last line is unfinished"), data[:end]
