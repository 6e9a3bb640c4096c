"""Whether a ledger still tells what happened: the first divergence, or none."""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from budgets.calibration import measure
from budgets.events import AttemptKey, Reserved, Settled
from budgets.failures import was_given_up
from budgets.formatting import PROGRAM
from budgets.ledger import LEDGER, LedgerCorruptError, Record, check_mark, read, read_mark
from budgets.liveness import centre_of, moved
from budgets.plan import Inherited, Parent, Plan, SearchTerms, Source
from budgets.state import ImpossibleEventError, RunState, fold
from orchestrator.execution.api import Outcome
from orchestrator.execution.files import SUMMARY
from orchestrator.execution.files import read as read_file
from orchestrator.plan.seeds import evaluation_seeds
from orchestrator.records.attempts import attempt_place
from orchestrator.records.diverged import DivergedError, ReplayError
from orchestrator.records.planned import space_of
from orchestrator.records.recommended import best_point
from orchestrator.records.recorded import as_of, is_there
from orchestrator.running.settle import attempt_id, settled, settles
from orchestrator.running.tries import judged
from orchestrator.search import Point, Search
from orchestrator.verification.campaign import conditions_as_planned
from orchestrator.verification.panels import at, differing_field, fresh_seeds, panels_and_decision
from orchestrator.warm_start import carried


@dataclass(frozen=True)
class Verification:
    """What was checked and held, up to the first thing that did not."""

    records: int
    head: str
    held: tuple[str, ...]
    divergence: str | None


def verify(directory: Path, *, accept_drift: bool = False) -> Verification:
    """Replay the run in `directory`, changing nothing. Raises FileNotFoundError without one.

    `accept_drift` lets pass the last bits of a search that went on on another processor.
    """
    held: list[str] = []
    records: Sequence[Record] = ()
    try:
        records = _chain(directory)
        held.append(f"hash chain: {len(records)} records follow from each other")
        state = fold(records)
        held.append("story: every record can follow the ones before it, none reserves beyond a cap")
        held.append(_accounts(records, state))
        if state.plan.search is None:
            held.append(_seeds(state))
        else:
            held += _replay(state, state.plan.search, accept_drift=accept_drift)
        if state.plan.proxy is not None:
            held.append("proxy: the candidates and seeds are those of the full evaluations")
        elif state.plan.phase == "check":
            held.append(_one_knob_each(directory, state))
        elif state.plan.campaign is not None:
            held.append(conditions_as_planned(state, state.plan.campaign))
        if state.plan.confirmation is not None:
            held.append(panels_and_decision(records))
        held.append(_settlements(directory, records, state))
        held.append(_calibration(directory, state))
        if state.plan.source is not None:
            held.append(_source(directory, state.plan, state.plan.source))
        if state.plan.search is not None and state.plan.search.inherited is not None:
            held.append(_start(directory, state.plan, state.plan.search.inherited))
        held.append(_reports(directory, records))
    except (LedgerCorruptError, ImpossibleEventError, ReplayError, DivergedError) as error:
        return Verification(len(records), _head(records), tuple(held), str(error))
    return Verification(len(records), _head(records), tuple(held), None)


def _head(records: Sequence[Record]) -> str:
    return records[-1].digest if records else ""


def _chain(directory: Path) -> Sequence[Record]:
    path = directory / LEDGER
    if not is_there(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    reading = read(path)
    if not reading.records:
        raise DivergedError(f"{path} holds no whole record")
    if reading.torn:
        raise DivergedError(
            f"{path}: record {len(reading.records)} at byte {reading.records[-1].end} is "
            f"unfinished ({len(reading.torn)} bytes); the next run sets them aside"
        )
    records = reading.records
    mark = read_mark(path)
    digest = records[mark.seq].digest if mark is not None and mark.seq < len(records) else ""
    check_mark(path, mark, len(records), digest)
    return reading.records


def _accounts(records: Sequence[Record], state: RunState) -> str:
    """Add the accounts up again without the reducer."""
    events = [record.event for record in records]
    reservations = [e for e in events if isinstance(e, Reserved)]
    settlements = [e for e in events if isinstance(e, Settled)]
    closed = {s.attempt_key for s in settlements}
    added = (
        sum(s.final for s in settlements if s.panel is None),
        sum(s.final for s in settlements if s.panel is not None),
        state.planned.paid_before_ms + sum(s.charged_ms for s in settlements),
        sum(r.reserve_ms for r in reservations if r.attempt_key not in closed),
    )
    own = state.accounts
    booked = (own.evaluations, own.apart, own.device_ms, own.reserved_device_ms)
    if added != booked:
        raise DivergedError(f"the accounts say {booked}, the records add up to {added}")
    apart = f", {added[1]} for the comparison" if added[1] else ""
    return (
        f"accounts: {added[0]} evaluations{apart} and {added[2] / 1000:.1f} device-seconds add up"
    )


def _seeds(state: RunState) -> str:
    for generation in state.generations:
        expected = evaluation_seeds(state.plan, generation.number)
        if generation.seeds != expected:
            raise DivergedError(
                f"generation {generation.number} was evaluated on seeds {generation.seeds}, "
                f"the plan gives {expected}"
            )
    fresh = fresh_seeds(state)
    beside = f", none of the {fresh} of the comparison is one of them" if fresh else ""
    return f"evaluation seeds: {len(state.generations)} generations use the plan's{beside}"


def _replay(state: RunState, terms: SearchTerms, *, accept_drift: bool) -> Iterator[str]:
    search = Search(terms, state.plan.resolved.population)
    search.replay(state.generations, accept_drift=accept_drift, with_models=True)
    yield _seeds(state)
    models = sum(g.told is not None and g.told.guided is not None for g in state.told)
    yield (
        f"search: {len(state.generations)} asks, {len(state.told)} state digests"
        f"{f' and the advice of {models} models' if models else ''} are what the plan gives here"
    )


def _one_knob_each(directory: Path, state: RunState) -> str:
    """Every point but the first moves one knob: from the baseline to an end of its range, or from
    the recommendation of the check's parent."""
    plan = state.plan
    for generation in state.generations:
        if plan.parent is None:
            if generation.points[0] != space_of(plan).baseline:
                raise DivergedError("candidate 0 is not the baseline of the plan's space")
        elif generation.points[0] != _recommended(directory, plan.parent, generation.points[0]):
            raise DivergedError(f"candidate 0 is not the recommendation of {plan.parent.run_id}")
        for candidate in range(1, len(generation.points)):
            try:
                moving = moved(plan, generation, candidate)
            except ValueError as error:
                raise DivergedError(str(error)) from error
            if moving is None:
                raise DivergedError(f"candidate {candidate} is the {centre_of(plan)} once more")
    others = plan.resolved.population - 1
    if plan.parent is None:
        return f"check: {others} points move one knob to an end each"
    return f"check: {others} points move one knob each, around what {plan.parent.run_id} recommends"


def _recommended(directory: Path, parent: Parent, otherwise: Point) -> Point | None:
    """What the parent stood for when its ledger's head was that; `otherwise` if it is gone."""
    found = as_of(_runs_beside(directory), parent.head, run=parent.run_id)
    return otherwise if found is None else best_point(found[1])


def _settlements(directory: Path, records: Sequence[Record], state: RunState) -> str:
    """The evaluations' own files, where they still exist, say what the ledger says."""
    reserved: dict[AttemptKey, Reserved] = {}
    compared = missing = 0
    for record in records:
        event = record.event
        if isinstance(event, Reserved):
            reserved[event.attempt_key] = event
            if (worst_ms := _worst_ms(state, event)) != event.reserve_ms:
                raise DivergedError(
                    f"{at(record)} sets {event.reserve_ms} ms aside, its limits allow {worst_ms}"
                )
        if not isinstance(event, Settled):
            continue
        own = reserved[event.attempt_key]
        place = directory / "eval" / attempt_place(own)
        outcome = read_file(Outcome, place / SUMMARY)
        is_own = outcome is not None and outcome.attempt_id == attempt_id(state, own)
        if outcome is None or (not is_own and was_given_up(event.status, event.cause)):
            missing += 1
            continue
        if not is_own:  # it was settled by a file of that name, under another plan
            raise DivergedError(f"{at(record)}: {place / SUMMARY} is of another attempt")
        compared += 1
        end = judged(state, settled(own, outcome, recovered=event.recovered))
        given_up = was_given_up(event.status, event.cause)
        own_word = was_given_up(end.status, end.cause) and settles(outcome, event)
        if given_up and not own_word:
            continue  # it was not there yet when the attempt was given up, or it was excused
        differing = differing_field(event, end)
        if differing:
            raise DivergedError(f"{at(record)} says {differing} of {place / 'summary.json'}")
    gone = f", {missing} have none (any more)" if missing else ""
    return f"settlements: {compared} attempts' own files agree{gone}"


def _worst_ms(state: RunState, reserved: Reserved) -> int:
    """What the plan lets an attempt take at most."""
    batch = state.batch(reserved)
    return state.plan.limits.stretched(batch.length(reserved.candidate)).reserve_ms


def _calibration(directory: Path, state: RunState) -> str:
    """The plan's calibration is what the calibration's own ledger gives, where that still is."""
    calibration = state.plan.calibration
    if calibration is None or not calibration.ledger:
        return "calibration: none was measured for this run"
    found = as_of(_runs_beside(directory), calibration.ledger, "calibration")
    if found is None:
        return "calibration: its own ledger is not beside this run"
    path, measured = found[0], measure(found[1])
    if measured.samples != calibration.samples:
        raise DivergedError(f"the plan's calibration is not the one in {path}")
    return f"calibration: {len(measured.samples)} samples agree with {path.parent.name}"


def _runs_beside(directory: Path) -> Path:
    """The runs directory that the run is in."""
    return directory.absolute().parent.parent


def _source(directory: Path, plan: Plan, source: Source) -> str:
    """The search begins where the run that it follows stood then, if that still has a ledger."""
    found = as_of(_runs_beside(directory), source.head, "phase1", source.run_id)
    if found is None:
        return f"source: the ledger of {source.run_id} is not beside this run, or another one"
    path, then = found
    _, point = carried(source.run_id, then, space_of(plan))
    grade = "" if then.decided is None else then.decided.grade
    if (point, grade) != (source.point, source.grade):
        raise DivergedError(f"the plan's source is not what {path} says")
    return f"source: {source.run_id} recommends the point that the search begins at"


def _start(directory: Path, plan: Plan, inherited: Inherited) -> str:
    """The search starts where that run stood then, if that still has a ledger."""
    found = as_of(_runs_beside(directory), inherited.head, run=inherited.run_id)
    if found is None:
        return f"start: the ledger of {inherited.run_id} is not beside this run, or another one"
    assert plan.search is not None
    space = space_of(plan)
    try:
        stood = carried(inherited.run_id, found[1], space)
    except ValueError as error:
        raise DivergedError(f"the search cannot have started there: {error}") from error
    if stood != (inherited, plan.search.start):
        raise DivergedError(f"the search does not start where {inherited.run_id} stood")
    return f"start: {inherited.run_id} stood where the search starts"


class _Mark(BaseModel):
    """Where in the ledger a report was written."""

    records: int
    head: str


class _Report(BaseModel):
    """A generation's budget report, of which only that is looked at."""

    ledger: _Mark


def _reports(directory: Path, records: Sequence[Record]) -> str:
    """Every report names the head it was written at: that record must still be there."""
    paths = sorted(directory.glob("reports/gen_*.json"))
    for path in paths:
        try:
            mark = _Report.model_validate_json(path.read_bytes()).ledger
        except ValidationError as error:
            raise DivergedError(
                f"{path} is no budget report; write it again with: {PROGRAM} report --rebuild"
            ) from error
        is_known = 0 < mark.records <= len(records)
        if not is_known or records[mark.records - 1].digest != mark.head:
            at = mark.records - 1
            raise DivergedError(f"{path} was written at record {at}, which is not there")
    return f"reports: {len(paths)} name heads of this ledger"
