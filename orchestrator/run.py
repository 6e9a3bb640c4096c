"""A run in hand: its ledger, the state it amounts to, and the attempts they reserve and settle.

The walk through it is `orchestrator.walk`.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from budgets.accounts import Refusal
from budgets.chain import Record
from budgets.events import (
    Event,
    Owner,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.fold import apply, begin, fold, ticked
from budgets.ledger import Ledger
from budgets.state import Generation, RunState, Try
from budgets.terms import Plan
from objectives.api import ObjectiveSpec
from objectives.space import SearchSpace
from orchestrator.execution.attempts import read_summary
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.recovery import Unknown, Unstarted, recover
from orchestrator.plan import differences
from orchestrator.settle import attempt_id, attempt_place, late, settled, settles

Observer = Callable[[RunState, Event], None]


class PlanChangedError(ValueError):
    """The run directory belongs to another plan."""


@dataclass
class Run:
    """A ledger, and the state it amounts to."""

    ledger: Ledger
    state: RunState
    owner: Owner
    observe: Observer

    @property
    def directory(self) -> Path:
        return self.ledger.path.parent.absolute()

    def record(self, event: Event) -> None:
        """An event that cannot follow is refused before it is written, and then nothing changed.

        When writing fails, the state is ahead of the disk: the run must be opened anew.
        """
        self._commit(self.ledger.seal(event))

    def _commit(self, record: Record) -> None:
        apply(self.state, record)
        self.ledger.append(record)
        self.observe(self.state, record.event)

    def take(self, outcome: Outcome, *, recovered: bool = False) -> None:
        """Settle the attempt that ended so; or note that one given up as lost has come after all.

        What has been heard before is not heard again.
        """
        for attempt in self.state.open_tries():
            if self._attempt_id(attempt.reserved) == outcome.attempt_id:
                own = settled(attempt.reserved, self._excused(outcome), recovered=recovered)
                return self.record(own)
        if (lost := self._given_up(outcome.attempt_id)) is not None:
            self.record(late(lost, outcome))
        return None

    def _excused(self, outcome: Outcome) -> Outcome:
        """A failure on a disk that is full says nothing of its candidate: it is owed again."""
        if outcome.status is not Status.ERROR or not (why := self.ledger.room()):
            return outcome
        cause = f"{why}. Then: {outcome.cause}"
        return outcome.model_copy(update={"status": Status.LOST, "cause": cause})

    def _given_up(self, attempt_id: str) -> Settled | None:
        """The settlement of that attempt, if it was given up and nothing was heard of it since."""
        lost = (end for end in self.given_up() if self._attempt_id(end) == attempt_id)
        return next(lost, None)

    def given_up(self) -> list[Settled]:
        """Settlements of attempts that were lost, and of which nothing was heard since."""
        heard = {(e.generation, e.candidate, e.seed, e.attempt) for e in self.state.late}
        ends = (
            attempt.settled
            for generation in self.state.generations
            for tries in generation.tries.values()
            for attempt in tries
        )
        return [
            end
            for end in ends
            if end is not None
            and end.status is Status.LOST
            and (end.generation, end.candidate, end.seed, end.attempt) not in heard
        ]

    def reserve(self, generation: Generation, candidate: int, seed: int) -> Attempt | Refusal:
        """Set an attempt's worst case aside and make its directory; or say why not.

        The directory is empty, unless it holds the result of this very attempt: then the ledger is
        an older copy of itself, and the attempt was paid for already.
        """
        reserved = Reserved(
            generation=generation.number,
            candidate=candidate,
            seed=seed,
            attempt=len(generation.tries.get((candidate, seed), ())) + 1,
            reserve_ms=self.state.plan.limits.reserve_ms,
        )
        record = self.ledger.seal(reserved)
        accounts = ticked(self.state.accounts, record)
        if refusal := accounts.refusal(reserved.reserve_ms):
            return refusal
        attempt = self.attempt(reserved, generation)
        if read_summary(attempt.directory, attempt.attempt_id) is None:
            shutil.rmtree(attempt.directory, ignore_errors=True)
            attempt.directory.mkdir(parents=True)
        self._commit(record)
        return attempt

    def attempt(self, reserved: Reserved, generation: Generation) -> Attempt:
        """The attempt a reservation is for: the same one whenever it is asked for."""
        plan = self.state.plan
        point = generation.points[reserved.candidate]
        place = attempt_place(reserved)
        return Attempt(
            attempt_id=self._attempt_id(reserved),
            directory=self.directory / "eval" / place,
            objective=ObjectiveSpec.model_validate(plan.objective),
            knobs=SearchSpace.model_validate(plan.space).decode(point),
            seed=reserved.seed,
            limits=plan.limits,
            owner=self.owner,
        )

    def _attempt_id(self, reserved: Reserved | Settled) -> str:
        return attempt_id(self.state.genesis, reserved)


def open_run(ledger: Ledger, plan: Plan, owner: Owner, observe: Observer) -> Run:
    """The run of `plan`: a new one, or the one in the ledger if it has the same plan.

    Raises PlanChangedError if the ledger belongs to another plan.
    """
    records = ledger.replay()
    first = next(records, None)
    if first is None:
        first = ledger.seal(Planned(plan=plan))
        ledger.append(first)
        return Run(ledger, begin(first), owner, observe)
    state = fold(chain([first], records))
    check_same_plan(ledger.path.parent, state, plan)
    return Run(ledger, state, owner, observe)


def check_same_plan(directory: Path, recorded: RunState, asked: Plan) -> None:
    """Raises PlanChangedError, saying what differs, unless they describe the same run.

    The run may have been amended since: asked for as it was at first, or as it is now, it is the
    same one.
    """
    changed = differences(recorded.planned, asked)
    if not changed or not differences(recorded.plan, asked):
        return
    ways = ["Repeat the recorded options", "give the new run its own name with --run-id"]
    ways.append("or begin one that names this as its parent with --fork-run")
    if all(name.startswith(("caps.", "resolved.generations")) for name in changed):
        ways = [f"Caps change by: python -m orchestrator amend {directory} ... --reason WHY"]
    raise PlanChangedError(
        f"{directory} holds another plan (recorded -> asked): {'; '.join(changed[:5])}. "
        f"{', '.join(ways)}."
    )


def settle_abandoned(run: Run) -> None:
    """Settle every attempt that nobody settled: adopted if it finished, else charged.

    None of this process's may be in flight.
    """
    for abandoned in run.state.open_tries():
        assert run.state.current is not None
        attempt = run.attempt(abandoned.reserved, run.state.current)
        wait_seconds = 2 * attempt.limits.grace_seconds + 5
        found = recover(attempt.directory, attempt.attempt_id, wait_seconds)
        run.record(_settled_late(abandoned, found))


def note_the_late(run: Run) -> None:
    """Take up the outcomes that attempts given up as lost have left in their files since."""
    for lost in run.given_up():
        directory = run.directory / "eval" / attempt_place(lost)
        outcome = read_summary(directory, attempt_id(run.state.genesis, lost))
        if outcome is not None and not settles(outcome, lost):
            run.take(outcome)


def _settled_late(abandoned: Try, found: Outcome | Unstarted | Unknown) -> Settled:
    if isinstance(found, Outcome):
        return settled(abandoned.reserved, found, recovered=True)
    if isinstance(found, Unstarted):
        found_ms, cause = 0, "it was never started"
    else:
        found_ms, cause = abandoned.reserved.reserve_ms, found.cause
    lost = Outcome(
        attempt_id=found.attempt_id, status=Status.LOST, cause=cause, seconds=found_ms / 1000
    )
    return settled(abandoned.reserved, lost, recovered=True)
