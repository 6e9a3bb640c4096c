"""Keep what a damaged or rolled back ledger still proves, in a directory of its own."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from budgets.events import Salvaged, Settled
from budgets.fold import ImpossibleEventError, apply, begin, fold
from budgets.ledger.chain import LEDGER, LedgerCorruptError, Reader, set_aside_command
from budgets.ledger.head import records_lost, rolled_back
from budgets.ledger.lock import take_lock
from budgets.ledger.storage import DISK, read_plain, write_aside
from budgets.ledger.writer import Clock, Ledger
from budgets.state import RunState
from orchestrator.execution.processes import this_owner
from orchestrator.running.run import Run, settle_abandoned


@dataclass(frozen=True)
class Prefix:
    """The whole records of a ledger up to the first that cannot be believed."""

    state: RunState
    data: bytes
    lost_records: int  # that are known of
    lost_bytes: int
    why: str


@dataclass(frozen=True)
class Saved:
    """What was kept, and what was lost."""

    out: Path
    records: int
    lost_records: int
    lost_bytes: int
    why: str
    adopted: int  # open reservations whose evaluation had finished
    charged: int  # ... or had not, or nobody knows: charged as lost


def salvage(source: Path, out: Path, clock: Clock) -> Saved:
    """Copy the valid prefix of the run in `source`, and its evaluations' files, to `out`.

    Reservations that are open in it are settled there: adopted if the evaluation had finished,
    else charged. `source` is left as it is. Raises ValueError when there is nothing to save, or
    `out` exists; LedgerLockedError while `source` is in use.
    """
    if out.exists() or out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"--salvage: expected a new directory outside of {source}, got {out}")
    part = out.with_name(f"{out.name}.part")  # of an earlier salvage too that died half-way
    lock = take_lock(source)
    try:
        prefix = _prefix(source)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        if (source / "eval").is_dir():
            shutil.copytree(source / "eval", part / "eval", symlinks=True)
        write_aside(part / LEDGER, prefix.data)
        settled = _settle(part, prefix, clock)
        part.rename(out)
        DISK.sync_directory(out.parent)
    finally:
        os.close(lock)
    return Saved(
        out=out,
        records=prefix.state.records,
        lost_records=prefix.lost_records,
        lost_bytes=prefix.lost_bytes,
        why=prefix.why,
        adopted=sum(end.status.final for end in settled),
        charged=sum(not end.status.final for end in settled),
    )


def _prefix(source: Path) -> Prefix:
    path = source / LEDGER
    data = read_plain(path)
    reader, state, digests, end, why = Reader(path, data), None, [], 0, ""
    try:
        for record in reader:
            if state is None:
                state = begin(record)
            else:
                apply(state, record)
            digests.append(record.digest)
            end = record.end
    except (LedgerCorruptError, ImpossibleEventError) as error:
        why = str(error).removeprefix(f"{path}: ").partition(". Expected")[0]
    if state is None:
        raise ValueError(
            f"{path} holds no whole record: nothing can be saved. Begin anew with: "
            f"{set_aside_command(source)}"
        )
    by_mark = records_lost(path, len(digests), digests.__getitem__)
    if by_mark and not why:
        why = (
            rolled_back(path, by_mark, len(digests))
            .removeprefix(f"{path} ")
            .partition(". Nothing")[0]
        )
    if not why and not reader.torn:
        raise ValueError(f"{path} is whole: there is nothing to salvage. Repeat the run's command")
    rest = data[end:]
    lines = rest.count(b"\n") + (not rest.endswith(b"\n") and bool(rest))
    return Prefix(
        state, data[:end], max(lines, by_mark), len(rest), why or "its last line is unfinished"
    )


def _settle(out: Path, prefix: Prefix, clock: Clock) -> list[Settled]:
    with Ledger(out, clock) as ledger:
        run = Run(ledger, fold(ledger.replay()), this_owner(), lambda *_: None)
        run.record(
            Salvaged(
                lost_records=prefix.lost_records,
                lost_bytes=prefix.lost_bytes,
                why=prefix.why,
            )
        )
        owed = [attempt.reserved for attempt in run.state.open_tries()]
        settle_abandoned(run)
        ledger.mark_head()
        if run.state.concluded is not None:
            ledger.give_up_ballast()
        batches = ((run.state.batch(r), r) for r in owed)
        ends = (b.tries[r.candidate, r.seed][r.attempt - 1].settled for b, r in batches)
        return [end for end in ends if end is not None]
