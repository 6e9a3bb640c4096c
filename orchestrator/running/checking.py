"""A check or a campaign, from what was asked for to its run."""

from dataclasses import dataclass

from budgets.terms import Calibration, Plan
from orchestrator.capacity import Pace
from orchestrator.checks.space import Check
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.planning.calibrations import calibration_here
from orchestrator.planning.names import run_directory
from orchestrator.records.recorded import Result, recorded_plan
from orchestrator.running.session import Session
from orchestrator.running.walk import Given


@dataclass(frozen=True)
class Checking:
    """What `request` describes, on these slots, at its own `pace`.

    A calibration there is gives it limits and the unit of noise, unless whoever asks has a
    `calibration`, or somebody's word for a time.
    """

    request: Check
    slots: Slots
    pace: Pace | None = None
    calibration: Calibration | None = None

    def carry_out(self, session: Session) -> Result:
        """Begin or take up the run. Raises ValueError on a request that cannot be planned."""
        request = self.request
        name = request.name(self.slots.device)
        directory = run_directory(session.root, request.phase, name)
        if (recorded := recorded_plan(directory)) is not None:
            plan = _planned_again(request, recorded)
        else:
            plan = self._planned(session)
            session.say(request.in_words(plan))
        proposer = Given(request.points())
        return session.carry_out(directory, plan, self.slots, lambda _: proposer, pace=self.pace)

    def _planned(self, session: Session) -> Plan:
        devices, calibration = devices_of(self.slots), self.calibration
        if calibration is None:
            objective = self.request.config.tuned
            calibration = calibration_here(session.root, objective, devices)
        return self.request.plan(devices, calibration)


def _planned_again(request: Check, recorded: Plan) -> Plan:
    """What `request` amounts to under the recorded thresholds, whatever the defaults are now."""
    plan, limits = request.plan(recorded.devices, recorded.calibration), recorded.thresholds
    if plan.campaign is not None:
        named = request.config.thresholds.model_dump(exclude_unset=True)
        limits = limits.model_copy(update=named)
    return plan.model_copy(update={"thresholds": limits, "parent": recorded.parent})
