"""The baseline measured: once for an objective and its devices, again for a reason, or aside."""

from dataclasses import dataclass

from budgets.terms import Calibration, Plan
from objectives import registry
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.planning.calibrations import (
    CALIBRATION_SEEDS,
    calibration_again,
    find_calibration,
    measured_for,
    with_its_cost,
)
from orchestrator.planning.names import Overrides, run_directory
from orchestrator.planning.plan import calibration_plan
from orchestrator.records.recorded import Result, recorded_state
from orchestrator.running.session import Session
from orchestrator.running.walk import Given


@dataclass(frozen=True)
class Calibrating:
    """The baseline of what is configured, to be measured on these slots, within its budget."""

    config: Config
    slots: Slots
    repeats: int = CALIBRATION_SEEDS
    overrides: Overrides = ()
    why: str = ""  # it is measured now

    def carry_out(self, session: Session, prefix: str = "") -> Result:
        """Measure it, or read the measurement there is on these devices.

        With a `prefix` to its name no run is planned with it.
        """
        devices = devices_of(self.slots)
        if known := find_calibration(session.root, self.config.tuned, devices):
            return known
        plan = calibration_plan(self.config, devices, self.repeats)
        return self._measured(session, plan.model_copy(update={"run_id": prefix + plan.run_id}))

    def again(self, session: Session, reason: str) -> Result:
        """Measure it anew beside what there is, or take up what that reason began.

        From then on new runs are planned with it; those there are keep theirs.
        """
        devices = devices_of(self.slots)
        plan = calibration_again(session.root, self.config, devices, self.repeats, reason)
        recorded = recorded_state(run_directory(session.root, "calibration", plan.run_id))
        if recorded is None and self.overrides:
            raise ValueError(
                f"--override: nothing was calibrated again for the reason {reason!r}, so no rule "
                "holds it up. One --reason serves both: repeat the one given with --again at first"
            )
        if recorded is not None and recorded.concluded is not None:
            session.say(f"{plan.run_id} was made for this reason. Another reason calibrates anew.")
        return self._measured(session, plan)

    def _measured(self, session: Session, plan: Plan) -> Result:
        directory = run_directory(session.root, "calibration", plan.run_id)
        baseline = Given((self.config.tuned.space.baseline,))
        return session.carry_out(
            directory, plan, self.slots, lambda _: baseline, self.overrides, why=self.why
        )


def calibrated_for(
    session: Session,
    config: Config,
    slots: Slots,
    overrides: Overrides,
) -> Calibration | Result:
    """The calibration to plan a search with, made if nobody has; or how making it ended instead."""
    objective, known = config.tuned, None
    if (assumed := config.evaluation.assume_eval_seconds) is not None:
        known = Calibration(assumed_seconds=assumed)
    elif found := find_calibration(session.root, objective, devices_of(slots)):
        known = measured_for(session.root, found, config)
    if known is not None:
        if overrides:
            raise ValueError("--override: there is no such run yet, so no rule holds it up")
        return known
    kind, where = registry.kind(objective.spec), f"{slots.count} x {slots.device_name}"
    why = (
        f"No calibration of {kind} on {where} yet: evaluating the baseline on "
        f"{CALIBRATION_SEEDS} seeds first."
    )
    wanted = Calibrating(config, slots, overrides=overrides, why=why)
    result = wanted.carry_out(session)
    return with_its_cost(result.state) if result.ruling.decision == "done" else result
