"""A search, from what was asked for to its run: calibrated first, begun where another one stood."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.state import RunState
from budgets.terms import Calibration, Parent, Plan, Window
from objectives.api import Objective
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.planning.calibrations import calibration_here
from orchestrator.planning.known_knobs import known_knobs
from orchestrator.planning.plan import Succession, no_share, search_plan, why_no_go
from orchestrator.planning.request import Overrides, Request, run_directory, run_name
from orchestrator.records.recorded import Result, recorded_plan
from orchestrator.running.calibrating import calibrated_for
from orchestrator.running.fork import forked, planned_again
from orchestrator.running.session import Session
from orchestrator.warm_start import learned, warm_start_of

if TYPE_CHECKING:
    from orchestrator.search import Search


@dataclass(frozen=True)
class Searching:
    """The search that `request` names, on these slots."""

    request: Request
    slots: Slots
    assumed_seconds: float | None = None
    overrides: Overrides = ()
    accept_drift: bool = False

    def carry_out(self, session: Session) -> Result:
        """Begin or take up the run; calibrates first if nobody has.

        When the calibration does not end well, its result is returned instead. Raises ValueError
        on a request that cannot be planned or that differs from the recorded run.
        """
        request, parent = self.request, None
        if request.fork:
            request, parent = forked(session.root, request)
        directory = run_directory(session.root, request.phase, run_name(request))
        if (recorded := recorded_plan(directory)) is not None:
            plan, overrides = planned_again(request, recorded), self.overrides
        else:
            begun = self._planned(session, request, parent)
            if isinstance(begun, Result):
                return begun
            plan, overrides = begun
        proposer = partial(replayed, accept_drift=self.accept_drift)
        return session.carry_out(directory, plan, self.slots, proposer, overrides)

    def _planned(
        self, session: Session, request: Request, parent: Parent | None
    ) -> tuple[Plan, Overrides] | Result:
        """The plan of a new run, and the overrides that let it begin; or how calibrating ended."""
        devices = devices_of(self.slots)
        succession, permits, others = self._succeeding(session, request)
        # what cannot be planned is not calibrated either
        outline = search_plan(request, devices, None, None, succession)
        refuse_the_past(request.window, session.clock.now())
        if self.assumed_seconds is None:
            _refuse_zero(outline, calibration_here(session.root, request.objective, devices))
        for reason in why_no_go(outline.resolved, outline.confirmation, outline.thresholds):
            session.say(f"Warning: {reason}.")
        if outline.source is None or not outline.source.added:
            _say_what_checks_found(session, request.objective, devices.kind)
        calibration = calibrated_for(session, request, self.slots, self.assumed_seconds, others)
        if isinstance(calibration, Result):
            return calibration
        plan = search_plan(request, devices, calibration, parent, succession)
        _refuse_zero(plan, calibration)
        return plan, permits

    def _succeeding(
        self, session: Session, request: Request
    ) -> tuple[Succession | None, Overrides, Overrides]:
        """What a new run takes over from the one it follows or starts from, if it does.

        Then the overrides that let it begin, and the others. Raises ValueError where it may not.
        """
        earlier = warm_start_of(session.root, request, self.slots.device)
        if earlier is None:
            return None, (), self.overrides
        for said in earlier.notes:
            session.say(f"Note: {said}.")
        permits, others = earlier.permits(self.overrides)
        seen = learned(earlier.state, accept_drift=self.accept_drift)
        return earlier.succession(request, seen), permits, others


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


def refuse_the_past(window: Window | None, now: datetime) -> None:
    """Raises ValueError where no evaluation could be over in time, however short."""
    if window is None or window.until is None:
        return
    left = (window.until - now).total_seconds() - window.margin_seconds
    if left <= 0:
        raise ValueError(
            f"--window: expected a moment more than {window.margin_seconds:g} s ahead (the "
            f"budget.safety_margin), got {window.until.isoformat(timespec='minutes')}"
        )


def replayed(state: RunState, *, accept_drift: bool) -> "Search":
    """The search that the ledger has brought this far."""
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations, accept_drift=accept_drift)
    return search
