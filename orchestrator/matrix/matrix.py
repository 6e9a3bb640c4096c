"""Points on seeds, evaluated once, in a run of their own that searches nothing.

A calibration, a check of knobs, of a proxy, of workers or of memory, and a campaign are this; they
differ in their points, and in what is read from them.
"""

from collections.abc import Sequence
from typing import Protocol

from budgets.plan import Calibration, Devices, Phase, Plan
from orchestrator.capacity import Pace
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.plan.history import calibration_here
from orchestrator.plan.resolve import Overrides, run_directory, window_of
from orchestrator.records.recommended import Point
from orchestrator.records.recorded import Result, recorded_plan
from orchestrator.running.session import Session
from orchestrator.running.walk import Given


class Matrix(Protocol):
    """Points on seeds, not yet planned."""

    @property
    def config(self) -> Config:
        """On which objective, and within what."""

    @property
    def phase(self) -> Phase: ...

    def points(self) -> tuple[Point, ...]: ...

    def name(self, kind: str) -> str:
        """The run's id on that kind of device: what was asked decides it."""

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan: ...

    def in_words(self, plan: Plan) -> str:
        """What is about to be evaluated."""


def carry_out(
    matrix: Matrix,
    session: Session,
    slots: Slots,
    pace: Pace | None = None,
    calibration: Calibration | None = None,
) -> Result:
    """Begin or take up the matrix's run, at its own `pace`.

    A calibration there is gives it limits and the unit of noise, unless whoever asks has a
    `calibration`, or somebody's word for a time. Raises ValueError on what cannot be planned.
    """
    name = matrix.name(slots.device)
    recorded = recorded_plan(run_directory(session.root, matrix.phase, name))
    if recorded is not None:
        plan = _planned_again(matrix, recorded)
    else:
        devices = devices_of(slots)
        if calibration is None:
            calibration = calibration_here(session.root, matrix.config.tuned, devices)
        plan = matrix.plan(devices, calibration)
        session.say(matrix.in_words(plan))
    return evaluate(session, plan, slots, matrix.points(), pace=pace)


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
    """The run of a plan with these points, begun or taken up."""
    directory = run_directory(session.root, plan.phase, plan.run_id)
    proposer = Given(tuple(points))
    return session.carry_out(
        directory, plan, slots, lambda _: proposer, overrides, pace=pace, why=why
    )


def _planned_again(matrix: Matrix, recorded: Plan) -> Plan:
    """What it amounts to under the recorded thresholds, whatever the defaults are now."""
    plan, limits = matrix.plan(recorded.devices, recorded.calibration), recorded.thresholds
    if plan.campaign is not None:
        named = matrix.config.thresholds.model_dump(exclude_unset=True)
        limits = limits.model_copy(update=named)
    return plan.model_copy(update={"thresholds": limits, "parent": recorded.parent})


def within(config: Config) -> tuple[object, ...]:
    """What a check keeps within: part of its name, so never in another order."""
    evaluation, budget = config.evaluation, config.budget
    return (
        evaluation.seed,
        evaluation.limit_seconds,
        evaluation.stall_seconds,
        budget.max_evals,
        budget.max_device_hours,
        budget.max_hours,
        budget.max_cost,
        window_of(budget),
        budget.price_per_device_hour,
    )
