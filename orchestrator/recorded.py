"""Runs on disk, read without disturbing whoever runs them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from budgets.chain import LEDGER, Reader
from budgets.state import RunState, fold
from budgets.terms import Devices, Phase, Plan
from budgets.triggers import Verdict, judge
from objectives.api import Objective
from orchestrator.plan import calibration_name

SET_ASIDE = (".damaged", ".salvaged")
"""What the directories that `ledger salvage` speaks of end with: they are nobody's runs."""


@dataclass(frozen=True)
class Result:
    """What a run came to, for now."""

    directory: Path
    state: RunState
    verdict: Verdict


def recorded_state(directory: Path) -> RunState | None:
    """The run in `directory` as its ledger has it; None when no whole record is there yet."""
    path = directory / LEDGER
    if not path.exists():
        return None
    records = iter(Reader(path, path.read_bytes()))
    first = next(records, None)
    return None if first is None else fold(chain([first], records))


def recorded_plan(directory: Path) -> Plan | None:
    """The plan of the run in `directory` as it was agreed at first, if there is one."""
    state = recorded_state(directory)
    return None if state is None else state.planned


def finished_runs(root: Path, phase: Phase, family: str) -> Iterator[Result]:
    """The concluded runs of a phase whose names begin with `family`, in the order of names."""
    for directory in sorted((root / phase).glob(f"{family}-*")):
        if directory.name.endswith(SET_ASIDE):
            continue
        state = recorded_state(directory)
        if state is not None and state.concluded is not None:
            yield Result(directory, state, judge(state))


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """The first finished calibration of the objective on such devices, if there is one."""
    return next(finished_runs(root, "calibration", calibration_name(objective, devices)), None)


def find_run(run: str | None, root: Path) -> Path:
    """The directory of a run by id or path, or of the latest one. Raises ValueError without it."""
    if run is not None and (Path(run) / LEDGER).exists():
        return Path(run)
    ledgers = sorted(root.glob(f"*/*/{LEDGER}"), key=lambda path: path.stat().st_mtime)
    if run is not None:
        ledgers = [path for path in ledgers if path.parent.name == run]
    if not ledgers:
        wanted = "no run" if run is None else f"no run {run!r}"
        raise ValueError(f"{wanted} in {root}: name its directory, or say --runs-dir")
    return ledgers[-1].parent


def load_state(directory: Path) -> RunState:
    """The state of a run. Raises ValueError when its ledger holds no whole record."""
    state = recorded_state(directory)
    if state is None:
        raise ValueError(f"{directory / LEDGER} holds no whole record yet")
    return state
