"""Replay of a ledger: the first divergence, or none.

Whatever a run decides (seeds, points, comparisons, what the search is told, the verdict) is decided
again by the functions of its loop, on the state of the records before it, and compared.
"""

import errno
import os
from dataclasses import dataclass
from math import isclose
from pathlib import Path

from budgets.events import Asked, Decided, Event, Reserved, Settled
from budgets.failure_causes import was_given_up
from budgets.ledger import LEDGER, LedgerCorruptError, Reader
from budgets.plan import Configuration
from budgets.schedule import next_action
from budgets.state import ImpossibleEventError, RunState, apply
from budgets.verdict import decide
from orchestrator.execution.api import SUMMARY, Outcome, read
from orchestrator.plan.comparisons import due, next_generation
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
        state = apply(None, records[0])
        for record in records[1:]:
            try:
                _check(directory, state, record.event, found)
            except LookupError:  # of an unknown batch, which `apply` refuses
                apply(state, record)
                raise
            except DivergedError as error:
                place = f"record {record.seq} at byte {record.offset} ({record.event.kind})"
                raise DivergedError(f"{place} {error}") from None
            apply(state, record)
        if state.plan.search is not None:
            search = Search(state.plan.search, state.plan.resolved.population)
            search.replay(state.generations, with_models=True)
    except (LedgerCorruptError, ImpossibleEventError, ReplayError, DivergedError) as error:
        found.divergence = str(error)
    return found


def _check(directory: Path, state: RunState, event: Event, found: Verification) -> None:
    """Raise DivergedError if the loop would not have recorded this event. Counts files."""
    own = _own(directory, state, event)
    if isinstance(event, Settled):
        found.files += own is not None
        found.without_files += own is None
    elif own is None:
        raise DivergedError("is not due")
    for name, ours in own or ():
        theirs = getattr(event, name)
        is_close = False
        if isinstance(event, Decided) and {type(ours), type(theirs)} == {float}:
            is_close = isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)  # another processor's
        if ours != theirs and not is_close:
            by = f", by its {SUMMARY}" if isinstance(event, Settled) else ""
            raise DivergedError(f"has {name} {theirs} instead of {ours}{by}")


def _own(directory: Path, state: RunState, event: Event) -> Event | None:
    """Return what the loop would have recorded; None: nothing of that kind, or no file tells."""
    plan = state.plan
    match event:
        case Asked():
            plain = (Configuration(name=c.name, point=c.point) for c in event.configurations)
            known = tuple(plain) if plan.campaign is None else plan.campaign.conditions
            asked = next_generation(state, known)
            return asked if event.comparison is None else due(state)
        case Reserved():
            cost = state.batch(event).configurations[event.candidate].cost_factor
            reserve_ms = plan.limits.stretched(cost).reserve_ms
            return event.model_copy(update={"reserve_ms": reserve_ms})
        case Settled():
            return _by_its_file(directory, state, event)
        case Decided():
            if next_action(state) != "decide":
                return None
            fired, own = decide(state)
            if missing := [rule.rule for rule in fired if rule not in state.fired]:
                raise DivergedError(f"is recorded, and {missing[0]} has not fired")
            return own
    return event


def _by_its_file(directory: Path, state: RunState, event: Settled) -> Settled | None:
    """Return how the attempt's own file ends it; None without one.

    A file that came too late for a given-up attempt, or whose failure was excused, says nothing.
    """
    place = directory / "eval" / event.place
    outcome, given_up = read(Outcome, place), was_given_up(event.status, event.cause)
    is_own = outcome is not None and outcome.attempt_id == attempt_id(state, event)
    if outcome is None or (not is_own and given_up):
        return None
    if not is_own:  # it was settled by a file of that name, under another plan
        raise DivergedError(f"is of an attempt, and {place / SUMMARY} of another")
    end = judged(state, settled(event, outcome, recovered=event.recovered))
    is_its_end = was_given_up(end.status, end.cause) and end.seconds == event.seconds
    return end if not given_up or is_its_end else event
