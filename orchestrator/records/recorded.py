"""Runs on disk, read without disturbing whoever runs them."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from budgets.fold import fold
from budgets.ledger.chain import LEDGER
from budgets.ledger.head import Marked
from budgets.rules.triggers import Verdict, verdict_of
from budgets.state import RunState
from budgets.terms import Phase, Plan

SET_ASIDE = (".damaged", ".salvaged")
"""What the directories that `ledger salvage` speaks of end with: they are nobody's runs."""


@dataclass(frozen=True)
class Result:
    """What a run came to, for now."""

    directory: Path
    state: RunState
    verdict: Verdict


def recorded_state(directory: Path) -> RunState | None:
    """The run in `directory` as its ledger has it; None when no whole record is there yet.

    Raises ValueError where a part of the run is a link or no plain file, LedgerCorruptError where
    the ledger is damaged or has lost records.
    """
    path = directory / LEDGER
    if not is_there(path):
        return None
    records = iter(Marked(path))
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


def recorded_runs(root: Path, phase: Phase, family: str) -> Iterator[tuple[Path, RunState]]:
    """The runs of a phase whose names begin with `family`, in the order of names."""
    for directory in sorted((root / phase).glob(f"{family}-*")):
        if is_set_aside(directory):
            continue
        state = recorded_state(directory)
        if state is not None:
            yield directory, state


def finished_runs(root: Path, phase: Phase, family: str) -> Iterator[Result]:
    """The concluded ones of `recorded_runs`."""
    for directory, state in recorded_runs(root, phase, family):
        if state.concluded is not None:
            yield Result(directory, state, verdict_of(state))


def find_run(run: str | None, root: Path, phase: Phase | None = None) -> Path:
    """The directory of a run by id or path, or of the latest one.

    By its id it is looked for in one phase, if that is given. Raises ValueError without it,
    PermissionError where this user may not look into it.
    """
    if run is not None and os.path.lexists(Path(run) / LEDGER):  # False on what is no path at all
        return Path(run)
    ledgers = sorted(
        root.glob(f"{phase or '*'}/*/{LEDGER}"), key=lambda path: path.lstat().st_mtime
    )
    if run is not None:
        ledgers = [path for path in ledgers if path.parent.name == run]
    if not ledgers:
        for directory in root.glob(f"{phase or '*'}/*"):
            if directory.name == run and not os.access(directory, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))
        kind = "run" if phase is None else f"{phase} run"
        wanted = f"no {kind}" if run is None else f"no {kind} {run[:80]!r}"
        raise ValueError(f"{wanted} in {root}: name its directory, or say --runs-dir")
    return ledgers[-1].parent


def find_search(run: str | None, root: Path) -> Path:
    """The directory of a run by id or path, or of the latest search. Raises ValueError."""
    if run is not None:
        return find_run(run, root)
    ledgers = [
        path
        for phase in ("phase1", "phase2")
        for path in root.glob(f"{phase}/*/{LEDGER}")
        if not is_set_aside(path.parent)
    ]
    if not ledgers:
        raise ValueError(f"no search in {root}: name its directory, or say --runs-dir")
    return max(ledgers, key=lambda path: path.lstat().st_mtime).parent


def load_state(directory: Path) -> RunState:
    """The state of a run. Raises ValueError when its ledger holds no whole record."""
    state = recorded_state(directory)
    if state is None:
        raise ValueError(f"{directory / LEDGER} holds no whole record yet")
    return state
