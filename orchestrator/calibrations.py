"""Calibrations on disk: which one fits, and whose price it is part of."""

from contextlib import suppress
from pathlib import Path

from budgets.calibration import measure
from budgets.chain import LEDGER, LedgerCorruptError, Reader
from budgets.events import Planned
from budgets.state import RunState
from budgets.storage import read_plain
from budgets.terms import Calibration, Caps, Devices
from objectives.api import Objective
from orchestrator.plan import Request, calibration_name, calibration_plan
from orchestrator.recorded import Result, finished_runs

CALIBRATION_SEEDS = 8


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """The first finished calibration of the objective on such devices, if there is one."""
    return next(finished_runs(root, "calibration", calibration_name(objective, devices)), None)


def measured_for(root: Path, found: Result, request: Request) -> Calibration:
    """What a calibration found; with its cost, if it was made for this request's caps.

    That is so when the process died between the two: no run has borne that cost yet.
    """
    plan = found.state.planned
    asked = calibration_plan(request.objective, plan.devices, CALIBRATION_SEEDS, request)
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
    for path in root.glob(f"*/*/{LEDGER}"):
        with suppress(LedgerCorruptError, ValueError, OSError):
            first, newline, _ = read_plain(path).partition(b"\n")
            for record in Reader(path, first + newline):
                assert isinstance(record.event, Planned)
                made = record.event.plan.calibration
                if made is not None and made.ledger == calibration and made.charged_ms:
                    return True
    return False
