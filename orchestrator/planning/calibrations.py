"""Calibrations on disk: which one fits, and whose price it is part of."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from budgets.calibration import measure
from budgets.ledger import LEDGER, LedgerCorruptError, read
from budgets.plan import Calibration, Caps, Devices, Plan
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.config import Config
from orchestrator.planning.names import calibration_name, family_of
from orchestrator.planning.plan import calibration_plan
from orchestrator.records.recorded import Result, finished_runs, first_plan, ledgers, recorded_runs

CALIBRATION_SEEDS = 8


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """The newest finished calibration of the objective on such devices, if there is one.

    The newest is the one begun last, whenever files were copied or an earlier one taken up.
    """
    family = calibration_name(objective, devices)
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: _number(found.directory, family), default=None)


def calibration_here(root: Path, objective: Objective, devices: Devices) -> Calibration | None:
    """What was measured of an evaluation on such devices."""
    found = find_calibration(root, objective, devices)
    return None if found is None else measure(found.state)


def calibrations_on(root: Path, objective: Objective, kind: str) -> list[Result]:
    """What `find_calibration` finds for whatever devices of a kind, the last made first.

    By its ledger's own clock: a copied file is younger than what is in it.
    """
    runs = finished_runs(root, "calibration", family_of(objective, kind))
    placed = [(calibration_name(objective, run.state.plan.devices), run) for run in runs]
    placed.sort(key=lambda pair: _number(pair[1].directory, pair[0]))
    newest = dict(placed)  # at each place its last one
    return sorted(newest.values(), key=lambda run: made_at(run.directory), reverse=True)


def made_at(directory: Path) -> datetime:
    """When a run came to its end."""
    return datetime.fromisoformat(read(directory / LEDGER).records[-1].at)


def calibration_again(
    root: Path, config: Config, devices: Devices, repeats: int, reason: str
) -> Plan:
    """The plan of a calibration beside those there are, made for a reason that it keeps.

    It is the same one as long as the reason is the same: unfinished, it is taken up.
    """
    plan = calibration_plan(config, devices, repeats)
    family, reasons = (
        calibration_name(config.tuned, devices),
        (f"calibrated again: {reason.strip()}",),
    )
    newest = 0
    for directory, state in recorded_runs(root, "calibration", family):
        if state.planned.reasons == reasons:
            return plan.model_copy(update={"run_id": directory.name, "reasons": reasons})
        newest = max(newest, _number(directory, family))
    name = f"{plan.run_id}-{newest + 1}" if newest else plan.run_id
    return plan.model_copy(update={"run_id": name, "reasons": reasons})


def _number(directory: Path, family: str) -> int:
    """Which of a family's calibrations it is; the first one's name has no number."""
    _, _, number = directory.name.removeprefix(f"{family}-").partition("-")
    return int(number) if number.isdecimal() else 1


def measured_for(root: Path, found: Result, config: Config) -> Calibration:
    """What a calibration found; with its cost, if it was made for these caps.

    That is so when the process died between the two: no run has borne that cost yet.
    """
    plan = found.state.planned
    asked = calibration_plan(config, plan.devices, CALIBRATION_SEEDS)
    is_capped = asked.caps != Caps(evaluations=asked.caps.evaluations)
    if is_capped and plan.run_id == asked.run_id and not is_borne(root, found.state.head):
        return with_its_cost(found.state)
    return measure(found.state)


def with_its_cost(state: RunState) -> Calibration:
    """What a calibration found, as part of the price of the run that it was made for."""
    accounts = state.accounts
    cost = {"charged_ms": accounts.device_ms, "open_ms": accounts.wall_ms}
    return measure(state).model_copy(update=cost)


def is_borne(root: Path, calibration: str) -> bool:
    """Whether a run has taken the cost of the calibration with this head on its own account."""
    for path in ledgers(root):
        with suppress(LedgerCorruptError, ValueError, OSError):
            plan = first_plan(path)
            made = None if plan is None else plan.calibration
            if made is not None and made.ledger == calibration and made.charged_ms:
                return True
    return False
