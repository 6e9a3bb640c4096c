"""A search, from what was asked for to its run: calibrated first, begun where another one stood."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from budgets.ledger import LedgerCorruptError
from budgets.plan import Calibration, Plan
from budgets.state import ImpossibleEventError, RunState
from objectives.api import Objective
from orchestrator.config import Config, Verdict
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import calibrated_for
from orchestrator.plan.phase2 import followed, landscapes, recorded_again
from orchestrator.plan.resolve import (
    Overrides,
    Succession,
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


@dataclass(frozen=True)
class Searching:
    """The search that is configured, on these slots."""

    config: Config
    slots: Slots
    overrides: Overrides = ()

    def carry_out(self, session: Session) -> Result:
        """Begin or take up the run; calibrates first if nobody has.

        When the calibration does not end well, its result is returned instead. Raises ValueError
        on what cannot be planned or differs from the recorded run.
        """
        config = self.config
        directory = run_directory(session.root, config.search.phase, run_name(config))
        if (recorded := recorded_plan(directory)) is not None:
            plan, overrides = planned_again(config, recorded), self.overrides
        else:
            begun = self._planned(session)
            if isinstance(begun, Result):
                return begun
            plan, overrides = begun
        return session.carry_out(directory, plan, self.slots, replayed, overrides)

    def _planned(self, session: Session) -> tuple[Plan, Overrides] | Result:
        """The plan of a new run, and the overrides that let it begin; or how calibrating ended."""
        config, devices = self.config, devices_of(self.slots)
        succession, permits, others = self._succeeding(session)
        # what cannot be planned is not calibrated either
        outline = search_plan(config, devices, None, succession)
        refuse_the_past(window_of(config.budget), session.clock.now())
        if config.evaluation.assume_eval_seconds is None:
            _refuse_zero(outline, calibration_here(session.root, config.tuned, devices))
        for reason in why_no_go(outline.resolved, outline.confirmation, outline.thresholds):
            session.say(f"Warning: {reason}.")
        if outline.source is None or not outline.source.added:
            _say_what_checks_found(session, config.tuned, devices.kind)
        calibration = calibrated_for(session, config, self.slots, others)
        if isinstance(calibration, Result):
            return calibration
        plan = search_plan(config, devices, calibration, succession)
        _refuse_zero(plan, calibration)
        return plan, permits

    def _succeeding(self, session: Session) -> tuple[Succession | None, Overrides, Overrides]:
        """What a new run takes over from the one it follows, if it does.

        Then the overrides that let it begin, and the others. Raises ValueError where it may not.
        """
        earlier = followed(session.root, self.config, self.slots.device)
        if earlier is None:
            return None, (), self.overrides
        permits, others = earlier.permits(self.overrides)
        seen = landscapes(earlier.state)[-1]
        return earlier.succession(self.config, seen), permits, others


def planned_again(config: Config, recorded: Plan) -> Plan:
    """What is configured, with what the recorded plan has found out or taken over.

    A search method, a first step, thresholds and a verdict that it does not name are the recorded
    ones, whatever the defaults have become.
    """
    config = _as_begun(config, recorded)
    succession = recorded_again(config, recorded)
    plan = search_plan(config, recorded.devices, recorded.calibration, succession)
    named = config.thresholds.model_dump(exclude_unset=True)
    kept: dict[str, Any] = {"thresholds": recorded.thresholds.model_copy(update=named)}
    if config.verdict == Verdict():
        kept["confirmation"] = recorded.confirmation
    return plan.model_copy(update=kept)


def _as_begun(config: Config, recorded: Plan) -> Config:
    """With the method and the first step of the recorded search."""
    search, asked = recorded.search, config.search
    if search is None or (asked.method or search.method) != search.method:
        return config
    is_first = asked.sigma0 is None and recorded.source is None
    sigma0 = search.sigma0 if is_first else asked.sigma0
    return config.having({"search.method": search.method, "search.sigma0": sigma0})


def _refuse_zero(plan: Plan, calibration: Calibration | None) -> None:
    """Raises ValueError where a verdict is asked for on a baseline that gains are no share of."""
    if plan.confirmation is not None and (why := no_share(calibration)):
        raise ValueError(
            f"{why}: no verdict can be reached. Let the objective return a score whose 0 is "
            "out of reach, a loss or that plus a constant, or search without a verdict: "
            "--set verdict.confirm_seeds=0"
        )


def _say_what_checks_found(session: Session, objective: Objective, kind: str) -> None:
    """What checks have shown or left open: a note, whatever it says and cannot read."""
    try:
        shown = known_knobs(session.root, objective, kind)
    except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
        session.say(f"Warning: {error}.")
        return
    for line in shown.lines():
        session.say(line)


def replayed(state: RunState) -> "Search":
    """The search that the ledger has brought this far."""
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations)
    return search
