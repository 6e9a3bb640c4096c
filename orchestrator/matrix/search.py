"""Carry out a search: calibrate first if needed, begin where the followed run ended."""

from typing import TYPE_CHECKING

from budgets.ledger import LedgerCorruptError
from budgets.plan import Calibration, Plan
from budgets.state import ImpossibleEventError, RunState
from objectives.api import Objective
from objectives.registry import CALLABLE
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import calibrated_for
from orchestrator.plan.phase2 import followed, landscapes, recorded_again
from orchestrator.plan.resolve import (
    Overrides,
    no_share,
    refuse_the_past,
    run_directory,
    run_name,
    search_plan,
    why_no_go,
    window_of,
)
from orchestrator.plan.times import calibration_here, known_knobs
from orchestrator.records.runs import Result, recorded_plan
from orchestrator.run.session import Session

if TYPE_CHECKING:
    from orchestrator.search import Search


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
    """Say what finished checks have shown; a damaged one is named and stops no search."""
    try:
        known = known_knobs(session.root, objective, kind)
    except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
        session.say(f"Warning: {error}.")
        return
    for line in known.lines():
        session.say(line)


def replayed(state: RunState) -> "Search":
    """Return the search as the ledger has it."""
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations)
    return search
