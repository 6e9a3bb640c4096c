"""Points on seeds, evaluated once, in a run of their own that searches nothing.

A calibration, a check of knobs, of a proxy, of workers or of memory, and a campaign are this; they
differ in their points, and in what is read from them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgets.calibration import measure
from budgets.ledger import LedgerCorruptError
from budgets.plan import Calibration, Caps, Devices, Envelope, Phase, Plan
from budgets.state import RunState
from objectives import registry
from orchestrator.capacity import Pace
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.plan.resolve import (
    Overrides,
    calibration_name,
    calibration_plan,
    caps_for,
    family_of,
    plan_of,
    run_directory,
    short_hash,
)
from orchestrator.plan.times import CALIBRATION_SEEDS, calibration_here, find_calibration
from orchestrator.records.objective import Point
from orchestrator.records.runs import (
    Result,
    first_plan,
    ledgers,
    recorded_plan,
    recorded_runs,
    recorded_state,
)
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
        plan = matrix.plan(recorded.devices, recorded.calibration)
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


# Calibrations


def calibrate(  # noqa: PLR0913 - what is measured, how often, why, and under which name
    session: Session,
    config: Config,
    slots: Slots,
    repeats: int = CALIBRATION_SEEDS,
    overrides: Overrides = (),
    *,
    why: str = "",
    prefix: str = "",
    again: str = "",
) -> Result:
    """Measure the baseline, or read the measurement there is on these devices.

    With a `prefix` to its name no run is planned with it. `why` is said where it is measured now.
    With a reason to do so `again` it is measured anew, or what that reason began is taken up: from
    then on new runs are planned with it, those there keep theirs.
    """
    devices, root = devices_of(slots), session.root
    plan = calibration_plan(config, devices, repeats)
    plan = plan.model_copy(update={"run_id": prefix + plan.run_id})
    if again:
        plan = _calibration_again(root, config, plan, again)
        recorded = recorded_state(run_directory(root, "calibration", plan.run_id))
        if recorded is None and overrides:
            raise ValueError(
                f"--override: nothing was calibrated again for the reason {again!r}, so no rule "
                "holds it up. One --reason serves both: repeat the one given with --again at first"
            )
        if recorded is not None and recorded.concluded is not None:
            session.say(f"{plan.run_id} was made for this reason. Another reason calibrates anew.")
    elif known := find_calibration(root, config.tuned, devices):
        return known
    return evaluate(session, plan, slots, (config.tuned.space.baseline,), overrides, why=why)


def calibrated_for(
    session: Session, config: Config, slots: Slots, overrides: Overrides
) -> Calibration | Result:
    """The calibration to plan a search with, made if nobody has; or how making it ended instead."""
    known, assumed = None, config.evaluation.assume_eval_seconds
    if assumed is not None:
        known = Calibration(assumed_seconds=assumed)
    elif found := find_calibration(session.root, config.tuned, devices_of(slots)):
        known = _measured_for(session.root, found, config)
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
    return _with_its_cost(result.state) if result.ruling.decision == "done" else result


def _calibration_again(root: Path, config: Config, plan: Plan, reason: str) -> Plan:
    """Return the plan of a calibration beside those there are, made for a reason that it keeps.

    It is the same plan as long as the reason is the same: an unfinished run is resumed.
    """
    reasons = (f"calibrated again: {reason.strip()}",)
    family = calibration_name(config.tuned, plan.devices)
    earlier = list(recorded_runs(root, "calibration", family))
    for directory, state in earlier:
        if state.planned.reasons == reasons:
            return plan.model_copy(update={"run_id": directory.name, "reasons": reasons})
    name = f"{plan.run_id}-{len(earlier) + 1}" if earlier else plan.run_id
    return plan.model_copy(update={"run_id": name, "reasons": reasons})


def _measured_for(root: Path, found: Result, config: Config) -> Calibration:
    """Return what a calibration found; with its cost, if it was made for these caps.

    That is so when the process died between the two: no run has paid for it yet.
    """
    plan = found.state.planned
    asked = calibration_plan(config, plan.devices, CALIBRATION_SEEDS)
    is_capped = asked.caps != Caps(evaluations=asked.caps.evaluations)
    if is_capped and plan.run_id == asked.run_id and not _is_paid_for(root, found.state.head):
        return _with_its_cost(found.state)
    return measure(found.state)


def _with_its_cost(state: RunState) -> Calibration:
    """Return what a calibration found, as part of the price of the run that it was made for."""
    accounts = state.accounts
    cost = {"charged_ms": accounts.device_ms, "open_ms": accounts.wall_ms}
    return measure(state).model_copy(update=cost)


def _is_paid_for(root: Path, calibration: str) -> bool:
    """Whether a run has taken the cost of the calibration with this head on its own account."""
    for path in ledgers(root):
        with suppress(LedgerCorruptError, ValueError, OSError):
            plan = first_plan(path)
            made = None if plan is None else plan.calibration
            if made is not None and made.ledger == calibration and made.charged_ms:
                return True
    return False
