"""From a run's directory to its report: the ledger read once, and the files its attempts left."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path

from budgets.ledger.chain import LEDGER, Record
from budgets.ledger.head import Marked
from budgets.report.model import BudgetReport, budget_report
from budgets.state import RunState
from orchestrator.config.asked import found_as
from orchestrator.records.recorded import is_there
from orchestrator.records.standing import standing_of
from orchestrator.report.answer import answer
from orchestrator.report.curves import curves
from orchestrator.report.distribution import distribution
from orchestrator.report.evaluations import ended, evaluations, in_flight
from orchestrator.report.failures import failures
from orchestrator.report.generations import beside, generations, spans
from orchestrator.report.knobs import knobs
from orchestrator.report.marginals import marginals
from orchestrator.report.measured import measured_in
from orchestrator.report.model import Identity, Report, Session
from orchestrator.report.provenance import provenance
from orchestrator.report.scores import arms, comparisons, noise
from orchestrator.report.times import Noted, RunClock, clock_of, folded


def report(directory: Path, now: datetime | None = None) -> Report:
    """The report of the run in `directory`, as of its last record. Raises as `recorded` does.

    As of `now` it says of a run that no process has that it was interrupted.
    """
    return report_of(directory, recorded(directory), now)


def recorded(directory: Path) -> Iterator[Record]:
    """The records of the run in `directory`, verified as they are taken.

    Raises as `recorded_state` does; ValueError where no whole record is there yet.
    """
    path = directory / LEDGER
    records = iter(Marked(path)) if is_there(path) else iter(())
    first = next(records, None)
    if first is None:
        raise ValueError(f"{path} holds no whole record yet")
    return chain([first], records)


def report_of(directory: Path, records: Iterable[Record], now: datetime | None = None) -> Report:
    """The report of the run in `directory` from its records. Raises as `fold` does."""
    state, noted = folded(records)
    clock, budget = clock_of(state), budget_report(state)
    found = ended(state, noted, clock)
    own = spans(state, noted, clock, found)
    spread, no_spread = distribution(state)
    last = datetime.fromisoformat(noted.last_at)
    is_left = now is not None and standing_of(state, now).kind == "interrupted"
    losses, no_losses = curves(directory, state)
    return Report(
        identity=_identity(directory, state, noted, clock, budget),
        answer=answer(state, budget, directory, last, is_interrupted=is_left),
        budget=budget,
        knobs=knobs(state),
        evaluations=evaluations(state, found),
        in_flight=in_flight(state, noted, clock),
        generations=generations(state, noted, clock, own),
        beside=beside(own),
        noise=noise(state),
        distribution=spread,
        no_distribution=no_spread,
        marginals=marginals(state),
        arms=arms(state),
        comparisons=comparisons(budget.findings),
        curves=losses,
        no_curves=no_losses,
        failures=failures(directory, state),
        limits=state.plan.limits,
        provenance=provenance(directory, state),
    )


def _identity(
    directory: Path, state: RunState, noted: Noted, clock: RunClock, budget: BudgetReport
) -> Identity:
    return Identity(
        run_id=state.plan.run_id,
        phase=state.plan.phase,
        tier=state.plan.tier,
        objective=state.plan.objective["name"],
        score=measured_in(state),
        began=datetime.fromisoformat(noted.first_at),
        last=datetime.fromisoformat(noted.last_at),
        is_over=budget.decision in ("done", "stop"),
        sessions=_sessions(state, noted, clock),
        records=state.records,
        head=state.head,
        found_as=found_as(directory, state.plan),
    )


def _sessions(state: RunState, noted: Noted, clock: RunClock) -> tuple[Session, ...]:
    return tuple(
        Session(
            number=number,
            opened=datetime.fromisoformat(noted.opened_at[number]),
            began=clock.edges_ms[number] / 1000,
            ended=clock.edges_ms[number + 1] / 1000,
            host=opened.host,
            workers=opened.workers,
            versions=opened.versions,
        )
        for number, opened in enumerate(state.opened)
    )
