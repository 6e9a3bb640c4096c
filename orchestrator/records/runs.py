"""Runs on disk: found and read without disturbing whoever carries them out."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from budgets.events import Planned, Reserved, Settled
from budgets.formatting import counted
from budgets.ledger import LEDGER, LedgerCorruptError, Reader, marked, read
from budgets.plan import Phase, Plan
from budgets.rules import Ruling, ruling_of
from budgets.state import RunState, fold
from budgets.storage import read_plain

RUNS_DIR = "artifacts/cmaes"

DEPTHS = ("", "*/", "*/*/", "*/*/*/")
"""Where below its place the run of a cell may lie: there, or in a runs directory."""

MOST_NEAR = 3
"""Names that are offered in place of one that is not there."""

SET_ASIDE = (".damaged", ".salvaged")
"""What the directories that `verify --salvage` speaks of end with: they are nobody's runs."""


@dataclass(frozen=True)
class Result:
    """What a run came to, for now."""

    directory: Path
    state: RunState
    ruling: Ruling


def recorded_state(directory: Path) -> RunState | None:
    """The run in `directory` as its ledger has it; None when no whole record is there yet.

    Raises ValueError where a part of the run is a link or no plain file, LedgerCorruptError where
    the ledger is damaged or has lost records.
    """
    path = directory / LEDGER
    if not is_there(path):
        return None
    records = iter(marked(path))
    first = next(records, None)
    return None if first is None else fold(chain([first], records))


def is_there(ledger: Path) -> bool:
    """Whether there is a ledger to read. Raises ValueError where it or its like is a link.

    A link would let one run write into another's files; and what is no plain file may never end.
    """
    for part in (ledger, ledger.parent / "reports", ledger.parent / "eval"):
        if part.is_symlink():
            raise ValueError(
                f"{part} is a symbolic link: expected a run's own file or directory. Move what it "
                "points to in its place"
            )
    if ledger.exists() and not ledger.is_file():
        raise ValueError(f"{ledger} is no plain file: expected a ledger. Move it away")
    return ledger.exists()


def is_set_aside(directory: Path) -> bool:
    """Whether a person has moved the run out of the way, as messages propose."""
    return any(part in SET_ASIDE for part in directory.suffixes)


def recorded_plan(directory: Path) -> Plan | None:
    """The plan of the run in `directory` as it was agreed at first, if there is one."""
    state = recorded_state(directory)
    return None if state is None else state.planned


def first_plan(ledger: Path) -> Plan | None:
    """The plan in a ledger's first record, which is all that is read; None without a whole one.

    Raises as reading a ledger does.
    """
    first, newline, _ = read_plain(ledger).partition(b"\n")
    for record in Reader(ledger, first + newline):
        return record.event.plan if isinstance(record.event, Planned) else None
    return None


def ledgers(root: Path, phase: str = "*", run: str = "*") -> list[Path]:
    """Those in runs directories, the latest first. What is set aside is nobody's run."""
    found = root.glob(f"{phase}/{run}/{LEDGER}")
    kept = (path for path in found if not is_set_aside(path.parent))
    return sorted(kept, key=last_changed, reverse=True)


def last_changed(path: Path) -> float:
    """When, by the file system's account, in seconds; 0 where it has just been moved."""
    with suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def as_of(root: Path, head: str, phase: str = "*", run: str = "*") -> tuple[Path, RunState] | None:
    """The run whose ledger's head was that, as it stood then; None where there is none any more."""
    for path in sorted(ledgers(root, phase, run)):
        with suppress(LedgerCorruptError, ValueError, OSError):  # of another run, perhaps
            records = read(path).records
            heads = [record.digest for record in records]
            if head in heads:
                return path, fold(records[: heads.index(head) + 1])
    return None


def runs_of_cell(place: Path) -> Iterator[Path]:
    """Directories of runs in or below it, the least deep and the latest first.

    Calibrations and checks are made for others. Raises as reading a ledger does.
    """
    for depth in DEPTHS:
        found = place.glob(f"{depth}{LEDGER}")
        for path in sorted(found, key=last_changed, reverse=True):
            plan = first_plan(path) if is_there(path) else None
            if plan is not None and plan.phase not in ("calibration", "check"):
                yield path.parent


def recorded_runs(root: Path, phase: Phase, family: str) -> Iterator[tuple[Path, RunState]]:
    """The runs of a phase whose names begin with `family`, in the order of names."""
    for path in sorted(ledgers(root, phase, f"{family}-*")):
        state = recorded_state(path.parent)
        if state is not None:
            yield path.parent, state


def finished_runs(root: Path, phase: Phase, family: str) -> Iterator[Result]:
    """The concluded ones of `recorded_runs`."""
    for directory, state in recorded_runs(root, phase, family):
        if state.concluded is not None:
            yield Result(directory, state, ruling_of(state))


def find_run(run: str | None, root: Path, *phases: Phase) -> Path:
    """The directory of a run by id or path, or of the latest one.

    Where phases are given, it is looked for in these alone, unless it is named by its path. Raises
    ValueError without it or where two have the id, PermissionError where this user may not look
    into it.
    """
    if run is not None and os.path.lexists(Path(run) / LEDGER):  # False on what is no path at all
        return Path(run)
    every = [path for phase in phases or ("*",) for path in ledgers(root, phase)]
    found = [path for path in every if run in (None, path.parent.name)]
    if not found:
        for directory in root.glob("*/*"):
            if directory.name == run and not os.access(directory, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))
        kind = f"{phases[0]} run" if len(phases) == 1 else "search" if phases else "run"
        wanted = f"no {kind}" if run is None else f"no {kind} {run[:80]!r}"
        names = [path.parent.name for path in every]
        there = f" ({counted(len(names), 'run')} there)" if names else ""
        near = "" if run is None else " or ".join(get_close_matches(run[:80], names, MOST_NEAR))
        hint = near and f". Did you mean {near}?"
        raise ValueError(f"{wanted} in {root}{there}: name its directory, or say --runs-dir{hint}")
    if run is not None and len(found) > 1:
        named = " or ".join(str(path.parent) for path in found)
        raise ValueError(
            f"{len(found)} runs are called {run!r}: name the directory of one, {named}"
        )
    return max(found, key=last_changed).parent


def load_state(directory: Path) -> RunState:
    """The state of a run. Raises ValueError when its ledger holds no whole record."""
    state = recorded_state(directory)
    if state is None:
        raise ValueError(f"{directory / LEDGER} holds no whole record yet")
    return state


def attempt_place(reserved: Reserved | Settled) -> str:
    """The attempt's directory under the run's `eval/`."""
    again = "" if reserved.attempt == 1 else f".{reserved.attempt}"
    batch = f"{reserved.comparison or 'gen'}_{reserved.generation:04d}"
    return f"{batch}/cand_{reserved.candidate:04d}/seed_{reserved.seed}{again}"


class ReplayError(Exception):
    """The search no longer proposes what the ledger says it proposed.

    Named here, not beside the search, so that naming it imports no cma.
    """

    def __init__(self, generation: int, why: str) -> None:
        super().__init__(
            f"the replay diverges at generation {generation}: {why}. The ledger was changed, or "
            "written with another version of this program, of cma or of numpy"
        )
        self.generation = generation
