"""Replay of a ledger: the first divergence, or none.

Whatever a run decides (seeds, points, comparisons, what the search is told, the verdict) is decided
again by the functions of its loop, on the state of the records before it, and compared.
"""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path

from pydantic import BaseModel

from budgets.events import ComparisonAsked, Decided, GenerationAsked, Reserved, Settled
from budgets.failure_causes import was_given_up
from budgets.ledger import LEDGER, LedgerCorruptError, Reader, Record
from budgets.schedule import next_action
from budgets.state import ImpossibleEventError, RunState, apply, begin
from budgets.verdict import decide
from orchestrator.execution.api import SUMMARY, Outcome
from orchestrator.execution.api import read as read_file
from orchestrator.plan.comparisons import due, evaluation_seeds
from orchestrator.records.runs import ReplayError, is_there
from orchestrator.run.loop import attempt_id, judged, settled
from orchestrator.search import Search


class DivergedError(Exception):
    """A record or a file is not what the run would have made of it."""


@dataclass
class Verification:
    """What a replay found: the whole ledger's size, and what was compared up to a divergence."""

    records: int = 0
    head: str = ""
    files: int = 0  # settlements whose attempt's own file does not contradict them
    without_files: int = 0
    divergence: str | None = None


def verify(directory: Path) -> Verification:
    """Replay the run in `directory`, changing nothing. Raises FileNotFoundError without one."""
    path, found = directory / LEDGER, Verification()
    if not is_there(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    try:
        reader = Reader(path)
        records = tuple(reader)
        if reader.torn or not records:
            raise DivergedError(f"{path}: record {len(records)} is unfinished")
        found.records, found.head = len(records), records[-1].digest
        _replay(directory, records, found)
    except (LedgerCorruptError, ImpossibleEventError, ReplayError, DivergedError) as error:
        found.divergence = str(error)
    return found


def _replay(directory: Path, records: Sequence[Record], found: Verification) -> None:
    """Make each record again from those before it. Raises at the first that differs."""
    state = begin(records[0])
    for record in records[1:]:
        try:
            _check(state, record.event)
            if isinstance(record.event, Settled):
                if _has_file(directory, state, record.event):
                    found.files += 1
                else:
                    found.without_files += 1
        except LookupError:  # of an unknown batch, which `apply` refuses
            apply(state, record)
            raise
        except DivergedError as error:
            raise DivergedError(f"record {record.seq} at byte {record.offset} {error}") from None
        apply(state, record)
    if state.plan.search is not None:
        search = Search(state.plan.search, state.plan.resolved.population)
        search.replay(state.generations, with_models=True)


def _check(state: RunState, event: object) -> None:
    """Raise DivergedError if the loop would not have recorded this event."""
    plan = state.plan
    match event:
        case GenerationAsked():
            if event.seeds != (seeds := evaluation_seeds(plan, event.generation)):
                raise DivergedError(
                    f"evaluates generation {event.generation} on seeds {event.seeds}, "
                    f"instead of {seeds}"
                )
            if plan.campaign and set(event.points) != {plan.space.baseline}:
                raise DivergedError("evaluates a condition at another point than the plan's")
        case ComparisonAsked():
            wanted, name = due(state), event.comparison
            if wanted is None or wanted.comparison != name:
                raise DivergedError(f"asks for the {name} comparison, which is not due")
            _compare(f"asks for the {name} comparison with", event, wanted)
        case Reserved():
            cost = state.batch(event).configurations[event.candidate].cost_factor
            worst_ms = plan.limits.stretched(cost).reserve_ms
            if worst_ms != event.reserve_ms:
                raise DivergedError(
                    f"sets {event.reserve_ms} ms aside, its limits allow {worst_ms}"
                )
        case Decided():
            if next_action(state) != "decide":
                raise DivergedError("decides before everything planned is settled")
            fired, own = decide(state)
            _compare("decides", event, own)
            if missing := [rule.rule for rule in fired if rule not in state.fired]:
                raise DivergedError(f"decides, and {missing[0]} has not fired")


def _has_file(directory: Path, state: RunState, event: Settled) -> bool:
    """Return whether the attempt's own file is there. Raises DivergedError if it differs."""
    file = directory / "eval" / event.place / SUMMARY
    outcome, given_up = read_file(Outcome, file), was_given_up(event.status, event.cause)
    is_own = outcome is not None and outcome.attempt_id == attempt_id(state, event)
    if outcome is None or (not is_own and given_up):
        return False
    if not is_own:  # it was settled by a file of that name, under another plan
        raise DivergedError(f"is of an attempt, and {file} of another")
    end = judged(state, settled(event, outcome, recovered=event.recovered))
    is_its_end = was_given_up(end.status, end.cause) and end.seconds == event.seconds
    if not given_up or is_its_end:  # else it was excused, or came too late
        _compare(f"differs from {file}:", event, end)
    return True


def _compare(what: str, recorded: BaseModel, own: BaseModel) -> None:
    for name, ours in recorded:
        theirs = getattr(own, name)
        is_close = False
        if isinstance(recorded, Decided) and {type(ours), type(theirs)} == {float}:
            is_close = isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)  # another processor's
        if ours != theirs and not is_close:
            raise DivergedError(f"{what} {name} {ours} instead of {theirs}")
