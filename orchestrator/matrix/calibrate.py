"""The baseline measured: once for an objective and its devices, again for a reason, or aside."""

from budgets.plan import Calibration
from objectives import registry
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import evaluate
from orchestrator.plan.resolve import Overrides, calibration_plan, run_directory
from orchestrator.plan.times import (
    CALIBRATION_SEEDS,
    calibration_again,
    find_calibration,
    measured_for,
    with_its_cost,
)
from orchestrator.records.runs import Result, recorded_state
from orchestrator.run.session import Session


def calibrate(  # noqa: PLR0913 - what is measured, how often, why, and under which name
    session: Session,
    config: Config,
    slots: Slots,
    repeats: int = CALIBRATION_SEEDS,
    overrides: Overrides = (),
    *,
    why: str = "",
    prefix: str = "",
) -> Result:
    """Measure the baseline, or read the measurement there is on these devices.

    With a `prefix` to its name no run is planned with it. `why` is said where it is measured now.
    """
    devices = devices_of(slots)
    if known := find_calibration(session.root, config.tuned, devices):
        return known
    plan = calibration_plan(config, devices, repeats)
    plan = plan.model_copy(update={"run_id": prefix + plan.run_id})
    return evaluate(session, plan, slots, (config.tuned.space.baseline,), overrides, why=why)


def calibrate_again(  # noqa: PLR0913, PLR0917 - as above, for a reason
    session: Session,
    config: Config,
    slots: Slots,
    repeats: int,
    overrides: Overrides,
    reason: str,
) -> Result:
    """Measure it anew beside what there is, or take up what that reason began.

    From then on new runs are planned with it; those there are keep theirs.
    """
    plan = calibration_again(session.root, config, devices_of(slots), repeats, reason)
    recorded = recorded_state(run_directory(session.root, "calibration", plan.run_id))
    if recorded is None and overrides:
        raise ValueError(
            f"--override: nothing was calibrated again for the reason {reason!r}, so no rule "
            "holds it up. One --reason serves both: repeat the one given with --again at first"
        )
    if recorded is not None and recorded.concluded is not None:
        session.say(f"{plan.run_id} was made for this reason. Another reason calibrates anew.")
    return evaluate(session, plan, slots, (config.tuned.space.baseline,), overrides)


def calibrated_for(
    session: Session, config: Config, slots: Slots, overrides: Overrides
) -> Calibration | Result:
    """The calibration to plan a search with, made if nobody has; or how making it ended instead."""
    known, assumed = None, config.evaluation.assume_eval_seconds
    if assumed is not None:
        known = Calibration(assumed_seconds=assumed)
    elif found := find_calibration(session.root, config.tuned, devices_of(slots)):
        known = measured_for(session.root, found, config)
    if known is not None:
        if overrides:
            raise ValueError("--override: there is no such run yet, so no rule holds it up")
        return known
    kind, where = registry.kind(config.tuned.spec), f"{slots.count} x {slots.device_name}"
    why = (
        f"No calibration of {kind} on {where} yet: evaluating the baseline on "
        f"{CALIBRATION_SEEDS} seeds first."
    )
    result = calibrate(session, config, slots, overrides=overrides, why=why)
    return with_its_cost(result.state) if result.ruling.decision == "done" else result
