"""Runs from a configuration to their end: points on seeds, calibrations, and searches.

A calibration, a check of knobs, of a proxy, of workers or of memory, and a campaign are points on
seeds, from which no search learns. They differ in their points and in how their results are read.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.checks import measure
from budgets.formatting import PROGRAM
from budgets.ledger import LedgerCorruptError
from budgets.plan import Calibration, Caps, Devices, Envelope, Phase, Plan
from budgets.rules import ruling_of
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective
from objectives.registry import CALLABLE
from orchestrator.capacity import Pace
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.plan.phase2 import followed, landscapes, recorded_again
from orchestrator.plan.resolve import (
    Overrides,
    calibration_name,
    calibration_plan,
    caps_for,
    family_of,
    no_share,
    plan_of,
    refuse_the_past,
    run_directory,
    run_name,
    search_plan,
    short_hash,
    why_no_go,
    window_of,
)
from orchestrator.plan.times import (
    CALIBRATION_SEEDS,
    calibration_here,
    find_calibration,
    known_knobs,
)
from orchestrator.records.objective import Point
from orchestrator.records.runs import Result, ledgers, recorded_plan, recorded_runs
from orchestrator.run.loop import Given
from orchestrator.run.session import Session

if TYPE_CHECKING:
    from orchestrator.search import Search

NO_RUN_YET = "--override: there is no such run yet, so no rule holds it up"


@dataclass(frozen=True)
class Matrix:
    """Points on seeds that are not planned yet."""

    config: Config  # the objective, its limits and the caps
    phase: Phase
    points: tuple[Point, ...]
    shape: Envelope
    title: str  # for people, when the run begins
    name: str = ""  # the run's id; "": made from the request
    prefix: str = ""  # of such an id
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the plan, of this kind of run only

    def run_id(self, kind: str) -> str:
        """Return the run's id on that kind of device: an equal request finds the same run."""
        if self.name:
            return self.name
        evaluation, budget = self.config.evaluation, self.config.budget
        request = (
            self.points,
            self.shape.seeds_per_candidate,
            self.fields,
            evaluation.seed,
            evaluation.limit_seconds,
            evaluation.stall_seconds,
            caps_for(self.config, budget.max_evals or 1),
            budget.price_per_device_hour,
        )
        family = family_of(self.config.tuned, kind)
        return f"{self.prefix}{family}-{short_hash(repr(request))}"

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """Return the plan: one generation, every point on the same seeds."""
        own = {"run_id": self.run_id(devices.kind), **self.fields}
        return plan_of(self.config, devices, calibration, self.shape, self.phase, **own)


def carry_out(
    matrix: Matrix,
    session: Session,
    slots: Slots,
    pace: Pace | None = None,
    calibration: Calibration | None = None,
) -> Result:
    """Begin or resume the run of a matrix.

    A new run takes its limits and its noise from `calibration`, or from the one made on such
    devices.
    """
    directory = run_directory(session.root, matrix.phase, matrix.run_id(slots.device))
    if (recorded := recorded_plan(directory)) is not None:
        plan = matrix.plan(recorded.devices, recorded.calibration)
    else:
        devices = devices_of(slots)
        known = calibration or calibration_here(session.root, matrix.config.tuned, devices)
        plan = matrix.plan(devices, known)
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
    if overrides and recorded_plan(directory) is None:
        raise ValueError(NO_RUN_YET)
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
    again: bool = False,
) -> Result:
    """Measure the baseline on `repeats` seeds, or read the calibration made on these devices.

    `why` is said before measuring. Runs with a `prefix` to their names are used by no plan. With
    `again` it is measured again, or what was interrupted is resumed; new runs are then planned with
    it. With `overrides` nothing is begun.
    """
    devices = devices_of(slots)
    plan = calibration_plan(config, devices, repeats)
    name = prefix + plan.run_id
    if again:
        name = _name_of_another(session.root, config, plan, is_begun=bool(overrides))
    elif known := find_calibration(session.root, config.tuned, devices):
        return known
    plan = plan.model_copy(update={"run_id": name})
    return evaluate(session, plan, slots, (config.tuned.space.baseline,), overrides, why=why)


def _name_of_another(root: Path, config: Config, plan: Plan, *, is_begun: bool) -> str:
    """Return the name of a further calibration, or of the one that was interrupted.

    With `is_begun` also of one that a rule has paused.
    """
    family = calibration_name(config.tuned, plan.devices)
    earlier = list(recorded_runs(root, "calibration", family))
    for directory, state in earlier:
        if state.concluded is None and (is_begun or ruling_of(state).decision == "continue"):
            return directory.name
    return f"{plan.run_id}-{len(earlier) + 1}" if earlier else plan.run_id


def calibrated_for(
    session: Session, config: Config, slots: Slots, overrides: Overrides
) -> Calibration | Result:
    """Return the calibration to plan a search with; makes it if there is none.

    If that does not end well, its result is returned instead.
    """
    assumed = config.evaluation.assume_eval_seconds
    found = find_calibration(session.root, config.tuned, devices_of(slots))
    if (assumed is not None or found is not None) and overrides:
        raise ValueError(NO_RUN_YET)
    if assumed is not None:
        return Calibration(assumed_seconds=assumed)
    if found is not None:
        unpaid = _was_made_for(config, found) and not _is_paid_for(session.root, found.state.head)
        return _with_its_cost(found.state) if unpaid else measure(found.state)
    kind, where = registry.kind(config.tuned.spec), f"{slots.count} x {slots.device_name}"
    why = (
        f"No calibration of {kind} on {where} yet: evaluating the baseline on "
        f"{CALIBRATION_SEEDS} seeds first."
    )
    result = calibrate(session, config, slots, overrides=overrides, why=why)
    return _with_its_cost(result.state) if result.ruling.decision == "done" else result


def _with_its_cost(state: RunState) -> Calibration:
    """Return the calibration with its cost, which counts against the caps of its run."""
    accounts = state.accounts
    cost = {"charged_ms": accounts.device_ms, "open_ms": accounts.wall_ms}
    return measure(state).model_copy(update=cost)


def _was_made_for(config: Config, found: Result) -> bool:
    """Whether the calibration was made under the caps of this configuration."""
    plan = found.state.planned
    own = calibration_plan(config, plan.devices, CALIBRATION_SEEDS)
    is_capped = own.caps != Caps(evaluations=own.caps.evaluations)
    return is_capped and plan.run_id == own.run_id


def _is_paid_for(root: Path, calibration: str) -> bool:
    """Whether a run has the cost of the calibration with this head on its account.

    None has if the process was killed between the two.
    """
    for path in ledgers(root):
        with suppress(LedgerCorruptError, ValueError, OSError):
            plan = recorded_plan(path.parent)
            own = None if plan is None else plan.calibration
            if own is not None and own.ledger == calibration and own.charged_ms:
                return True
    return False


# Searches


def carry_out_search(
    session: Session, config: Config, slots: Slots, overrides: Overrides = ()
) -> Result:
    """Begin or resume the configured search; calibrates first if there is no calibration.

    If the calibration does not end well, its result is returned instead. Raises ValueError on a
    plan that is impossible, or that differs from the recorded run's.
    """
    directory = run_directory(session.root, config.search.phase, run_name(config))
    if (recorded := recorded_plan(directory)) is not None:
        succession = recorded_again(config, recorded)
        plan = search_plan(config, recorded.devices, recorded.calibration, succession)
    else:
        planned = _planned(session, config, slots, overrides)
        if isinstance(planned, Result):
            return planned
        plan, overrides = planned
    return session.carry_out(directory, plan, slots, replayed, overrides)


def _planned(
    session: Session, config: Config, slots: Slots, overrides: Overrides
) -> tuple[Plan, Overrides] | Result:
    """Return the plan of a new run and its overrides; or the calibration that did not end well.

    Raises ValueError if it may not follow its phase 1.
    """
    devices, succession = devices_of(slots), None
    permits: Overrides = ()
    if (earlier := followed(session.root, config, slots.device)) is not None:
        permits, overrides = earlier.permits(overrides)
        succession = earlier.succession(config, landscapes(earlier.state)[-1])
    # refuse what cannot be planned before a calibration is paid for
    outline = search_plan(config, devices, None, succession)
    refuse_the_past(window_of(config.budget), session.clock.now())
    if config.evaluation.assume_eval_seconds is None:
        _refuse_zero(outline, calibration_here(session.root, config.tuned, devices))
    for reason in why_no_go(outline):
        session.say(f"Warning: {reason}.")
    has_checks = not config.objective.startswith(CALLABLE)  # no command can name a callable
    if has_checks and (outline.source is None or not outline.source.added):
        _say_known_knobs(session, config.tuned, devices.kind)
    calibration = calibrated_for(session, config, slots, overrides)
    if isinstance(calibration, Result):
        return calibration
    plan = search_plan(config, devices, calibration, succession)
    _refuse_zero(plan, calibration)
    return plan, permits


def _refuse_zero(plan: Plan, calibration: Calibration | None) -> None:
    """Raise ValueError if a verdict is planned and the baseline's score is about 0."""
    if plan.confirmation is not None and (why := no_share(calibration)):
        raise ValueError(
            f"{why}: no verdict can be reached. Let the objective return a score whose 0 is "
            "out of reach, a loss or that plus a constant, or search without a verdict: "
            "--set verdict.confirm_seeds=0"
        )


def _say_known_knobs(session: Session, objective: Objective, kind: str) -> None:
    """Say which knobs finished checks have found dead, and which they have not shown alive."""
    known = known_knobs(session.root, objective, kind)
    if known.dead:
        session.say(
            f"Warning: {', '.join(known.dead)} did not move the score when checked: a search "
            "wastes budget there."
        )
    if known.neither:
        session.say(
            f"Note: {len(known.neither)} of {sum(map(len, known))} knobs have not been shown to "
            f"move the score; `{PROGRAM} check knobs` with the same options finds out."
        )


def replayed(state: RunState) -> "Search":
    """Return the search as the ledger has it."""
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations)
    return search
