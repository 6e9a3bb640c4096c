"""Points on seeds, evaluated once, in a run of their own that searches nothing.

A calibration, a check of knobs, of a proxy, of workers or of memory, and a campaign are this; they
differ in their points, and in what is read from them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgets.plan import Calibration, Devices, Envelope, Phase, Plan
from orchestrator.capacity import Pace
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.plan.resolve import (
    Overrides,
    caps_for,
    family_of,
    plan_of,
    run_directory,
    short_hash,
)
from orchestrator.plan.times import calibration_here
from orchestrator.records.objective import Point
from orchestrator.records.runs import Result, recorded_plan
from orchestrator.run.loop import Given
from orchestrator.run.session import Session

Own = Callable[[Calibration | None], Mapping[str, Any]]
"""Fields of the plan that only this kind of run has, given the calibration of its objective."""


@dataclass(frozen=True)
class Matrix:
    """Points on seeds that are not yet planned."""

    config: Config  # the objective, and the limits and caps to keep within
    phase: Phase
    points: tuple[Point, ...]
    shape: Envelope
    title: str  # what is about to be evaluated, for people
    name: str = ""  # the run's id; "": made from what is asked
    prefix: str = ""  # of such a made id
    own: Own = lambda calibration: {}  # noqa: ARG005

    def run_id(self, kind: str) -> str:
        """The run's id on that kind of device: the same request finds the same run."""
        if self.name:
            return self.name
        evaluation, budget = self.config.evaluation, self.config.budget
        asked = (
            self.points,
            self.shape.seeds_per_candidate,
            self.own(None),
            evaluation.seed,
            evaluation.limit_seconds,
            evaluation.stall_seconds,
            caps_for(self.config, budget.max_evals or 1),
            budget.price_per_device_hour,
        )
        family = family_of(self.config.tuned, kind)
        return f"{self.prefix}{family}-{short_hash(repr(asked))}"

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """One generation, every point on the same seeds. Raises ValueError on what cannot be."""
        own = {"run_id": self.run_id(devices.kind), **self.own(calibration)}
        return plan_of(self.config, devices, calibration, self.shape, self.phase, **own)


def carry_out(
    matrix: Matrix,
    session: Session,
    slots: Slots,
    pace: Pace | None = None,
    calibration: Calibration | None = None,
) -> Result:
    """Begin or resume the matrix's run, at its own `pace`.

    Its limits and its unit of noise are from `calibration`, or else from one that was made on such
    devices. Raises ValueError on what cannot be planned.
    """
    directory = run_directory(session.root, matrix.phase, matrix.run_id(slots.device))
    if (recorded := recorded_plan(directory)) is not None:
        plan = _planned_again(matrix, recorded)
    else:
        devices = devices_of(slots)
        if calibration is None:
            calibration = calibration_here(session.root, matrix.config.tuned, devices)
        plan = matrix.plan(devices, calibration)
        session.say(matrix.title)
    return evaluate(session, plan, slots, matrix.points, pace=pace)


def evaluate(  # noqa: PLR0913 - what is run, on what, and how
    session: Session,
    plan: Plan,
    slots: Slots,
    points: Sequence[Point],
    overrides: Overrides = (),
    *,
    pace: Pace | None = None,
    why: str = "",
) -> Result:
    """Begin or resume the run of a plan with these points."""
    directory = run_directory(session.root, plan.phase, plan.run_id)
    proposer = Given(tuple(points))
    return session.carry_out(
        directory, plan, slots, lambda _: proposer, overrides, pace=pace, why=why
    )


def _planned_again(matrix: Matrix, recorded: Plan) -> Plan:
    """The matrix's plan under the recorded thresholds, whatever the defaults are now."""
    plan, limits = matrix.plan(recorded.devices, recorded.calibration), recorded.thresholds
    if plan.campaign is not None:
        named = matrix.config.thresholds.model_dump(exclude_unset=True)
        limits = limits.model_copy(update=named)
    return plan.model_copy(update={"thresholds": limits})
