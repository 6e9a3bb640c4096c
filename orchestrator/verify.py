"""Replay of a ledger: the first divergence, or none.

Whatever a run decides (seeds, points, comparisons, what the search is told, the verdict) is decided
again by the functions of its loop, on the state of the records before it, and compared.
"""

import errno
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from math import isclose
from pathlib import Path
from typing import Any

from budgets.checks import measure
from budgets.events import ComparisonAsked, Decided, GenerationAsked, Reserved, Settled
from budgets.failures import was_given_up
from budgets.ledger import LEDGER, LedgerCorruptError, Record, marked
from budgets.schedule import next_action
from budgets.state import ImpossibleEventError, RunState, apply, begin
from budgets.verdict import decide, title
from orchestrator.execution.api import SUMMARY, Outcome
from orchestrator.execution.api import read as read_file
from orchestrator.plan.comparisons import due, evaluation_seeds
from orchestrator.plan.phase2 import carried
from orchestrator.records.runs import ReplayError, as_of, attempt_place, is_there
from orchestrator.run.attempts import attempt_id, judged, settled
from orchestrator.search import Search


class DivergedError(Exception):
    """A record, a file or a report is not what the run would have made of it."""


@dataclass(frozen=True)
class Verification:
    """What was checked and held, up to the first divergence."""

    records: int
    head: str
    held: tuple[str, ...]
    divergence: str | None


def verify(directory: Path) -> Verification:
    """Replay the run in `directory`, changing nothing. Raises FileNotFoundError without one."""
    path, held, divergence = directory / LEDGER, list[str](), None
    records: tuple[Record, ...] = ()
    if not is_there(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    try:
        reader = marked(path)
        records = tuple(reader)
        if reader.torn or not records:
            raise DivergedError(f"{path}: record {len(records)} is unfinished")
        held.append(f"hash chain: {len(records)} records follow from each other")
        for line in _replay(directory, records):
            held.append(line)
    except (LedgerCorruptError, ImpossibleEventError, ReplayError, DivergedError) as error:
        divergence = str(error)
    head = records[-1].digest if records else ""
    return Verification(len(records), head, tuple(held), divergence)


def _replay(directory: Path, records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each check that holds. Raises at the first that does not."""
    replay = Replay(directory, begin(records[0]))
    state, plan = replay.state, replay.state.plan
    for record in records[1:]:
        try:
            replay.check(record.event)
        except LookupError:  # of an unknown batch, which `apply` refuses
            apply(state, record)
            raise
        except DivergedError as error:
            raise DivergedError(f"record {record.seq} at byte {record.offset} {error}") from None
        apply(state, record)
    spent = state.accounts
    apart = f", {spent.comparisons} for the comparison" if spent.comparisons else ""
    yield (
        "accounts: every record can follow the ones before it, none reserves beyond a cap; "
        f"{spent.evaluations} evaluations{apart}, {spent.device_ms / 1000:.1f} device-seconds"
    )
    yield f"evaluation seeds: {len(state.generations)} generations use the plan's"
    if plan.campaign is not None:
        points = (plan.space.baseline,) * len(plan.campaign.conditions)
        if any(batch.points != points for batch in state.generations):
            raise DivergedError("a condition stands at another point than the plan's")
        yield f"conditions: {len(points)} stand where the plan says"
    if plan.search is not None:
        search = Search(plan.search, plan.resolved.population)
        search.replay(state.generations, with_models=True)
        models = sum(g.told is not None and g.told.guided is not None for g in state.completed)
        yield (
            f"search: {len(state.generations)} asks, {len(state.completed)} state digests and the "
            f"advice of {models} models are what the plan gives here"
        )
    if plan.confirmation is not None:
        own = state.decided
        verdict = "nothing is decided yet" if own is None else title(own.grade, own.no_go)
        yield f"decision: {replay.compared} comparisons are due where they stand; {verdict}"
    gone = f", {replay.files[False]} have none (any more)" if replay.files[False] else ""
    yield f"settlements: {replay.files[True]} attempts' own files agree{gone}"
    yield from _elsewhere(directory, state)


@dataclass
class Replay:
    """The run as its records tell it so far, each compared with what the loop would do."""

    directory: Path
    state: RunState
    compared: int = 0  # comparisons asked for
    files: Counter[bool] = field(default_factory=Counter)  # by whether an attempt has its own

    def check(self, event: object) -> None:
        """Raise DivergedError if the loop would not have recorded this event."""
        state = self.state
        match event:
            case GenerationAsked():
                if event.seeds != (seeds := evaluation_seeds(state.plan, event.generation)):
                    raise DivergedError(
                        f"evaluates generation {event.generation} on seeds {event.seeds}, "
                        f"instead of {seeds}"
                    )
            case ComparisonAsked():
                wanted, name = due(state), event.comparison
                if wanted is None or wanted.comparison != name:
                    raise DivergedError(f"asks for the {name} comparison, which is not due")
                _compare(f"asks for the {name} comparison with", event, wanted)
                self.compared += 1
            case Reserved():
                cost = state.batch(event).configurations[event.candidate].cost_factor
                worst_ms = state.plan.limits.stretched(cost).reserve_ms
                if worst_ms != event.reserve_ms:
                    raise DivergedError(
                        f"sets {event.reserve_ms} ms aside, its limits allow {worst_ms}"
                    )
            case Settled():
                self._compare_file(event)
            case Decided():
                if next_action(state) != "decide":
                    raise DivergedError("decides before everything planned is settled")
                fired, own = decide(state)
                _compare("decides", event, own)
                if missing := [rule.rule for rule in fired if rule not in state.fired]:
                    raise DivergedError(f"decides, and {missing[0]} has not fired")

    def _compare_file(self, event: Settled) -> None:
        """Compare a settlement with the attempt's own file, if that still exists."""
        file = self.directory / "eval" / attempt_place(event) / SUMMARY
        outcome, given_up = read_file(Outcome, file), was_given_up(event.status, event.cause)
        is_own = outcome is not None and outcome.attempt_id == attempt_id(self.state, event)
        if outcome is None or (not is_own and given_up):
            self.files[False] += 1
            return
        if not is_own:  # it was settled by a file of that name, under another plan
            raise DivergedError(f"is of an attempt, and {file} of another")
        self.files[True] += 1
        end = judged(self.state, settled(event, outcome, recovered=event.recovered))
        is_its_end = was_given_up(end.status, end.cause) and end.seconds == event.seconds
        if given_up and not is_its_end:
            return  # the file came after the attempt was settled as lost, or it was excused
        _compare(f"differs from {file}:", event, end)


def _compare(what: str, recorded: Any, own: Any) -> None:
    for one in fields(recorded):
        ours, theirs = getattr(recorded, one.name), getattr(own, one.name)
        is_close = False
        if isinstance(recorded, Decided) and {type(ours), type(theirs)} == {float}:
            is_close = isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)  # another processor's
        if ours != theirs and not is_close:
            raise DivergedError(f"{what} {one.name} {ours} instead of {theirs}")


def _elsewhere(directory: Path, state: RunState) -> Iterator[str]:
    """Compare the plan's calibration, and the phase 1 that it follows, with their ledgers."""
    root, plan = directory.absolute().parent.parent, state.plan
    calibration, source = plan.calibration, plan.source
    if calibration is not None and calibration.ledger:
        found = as_of(root, calibration.ledger, "calibration")
        if found is not None and measure(found[1]).samples != calibration.samples:
            raise DivergedError(f"the plan's calibration is not the one in {found[0]}")
        yield f"calibration: its ledger {'is not here' if found is None else 'agrees'}"
    if source is not None:
        found = as_of(root, source.head, "phase1", source.run_id)
        if found is not None:
            path, then = found
            point, _ = carried(source.run_id, then, plan.space)
            grade = "" if then.decided is None else then.decided.grade
            if (point, grade) != (source.point, source.grade):
                raise DivergedError(f"the plan's source is not what {path} says")
        yield f"source {source.run_id}: its ledger {'is not here' if found is None else 'agrees'}"
