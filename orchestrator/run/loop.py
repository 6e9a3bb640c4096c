"""The loop of a run, readable aloud: ask, reserve, evaluate, settle, tell, judge."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from budgets.accounts import Refusal
from budgets.events import Concluded, GenerationAsked, GenerationTold
from budgets.ledger import LEAST_FREE_BYTES
from budgets.rules import (
    Reading,
    Ruling,
    disk_full,
    judge,
    only_ends_the_search,
    place_of,
    refused,
)
from budgets.schedule import blocking_batches, can_ask, next_action, open_batches, search_is_over
from budgets.state import Batch, RunState
from budgets.verdict import decide
from orchestrator.capacity import Pace
from orchestrator.execution.api import Executor
from orchestrator.plan.comparisons import due, evaluation_seeds
from orchestrator.run.attempts import Run, has_begun, settle_one_abandoned

Pending = tuple[Batch, tuple[int, int]]
"""An evaluation of a batch: candidate and seed."""

WAIT_SECONDS = 0.5
"""How long one look at the executor takes before signals and budgets are looked at again."""

INTERRUPTED = Ruling("continue")
"""A person stopped the run, which may go on."""


class Stop(Protocol):
    """Whether a person, by a signal, wants the run to end."""

    requested: bool  # no new evaluations; those running may finish
    signum: int

    @property
    def now(self) -> bool:
        """Kill those too."""

    def install(self) -> None:
        """Begin to listen."""


class Proposer(Protocol):
    """Where the points of a generation come from, and who learns from them."""

    def ask(self) -> tuple[tuple[float, ...], ...]: ...

    def tell(self, generation: Batch) -> GenerationTold | None: ...


@dataclass(frozen=True)
class Given:
    """Proposes points that were known before, and learns nothing: a calibration, a check."""

    points: tuple[tuple[float, ...], ...]

    def ask(self) -> tuple[tuple[float, ...], ...]:
        return self.points

    def tell(self, generation: Batch) -> None:
        """There is nobody to learn."""


@dataclass
class Loop:
    """Brings a run to its end: who proposes, who evaluates, who may stop it or slow it down.

    `closed` is called after each generation that was told and, with None, after comparisons;
    `look` whenever the run waits for what is in flight.
    """

    run: Run
    proposer: Proposer
    executor: Executor
    stop: Stop
    closed: Callable[[Run, Batch | None], None]
    pace: Pace = field(default_factory=Pace)
    look: Callable[[Run], None] = lambda run: None  # noqa: ARG005 - nobody looks

    def to_its_end(self) -> Ruling:
        """Propose, evaluate and learn until a rule, a budget, a signal or the plan ends it."""
        while True:
            if judge(self.run.state).decision != "continue":
                if not self._drained():  # what fills slots holds more in reserve than it takes
                    return INTERRUPTED
                ruling = judge_on_record(self.run)
                if ruling.decision != "continue":
                    return ruling
            if (comparison := due(self.run.state)) is not None:
                self.run.record(comparison)
                continue
            if next_action(self.run.state) == "decide":
                if not self._drained():
                    return INTERRUPTED
                self._decide()
                continue
            if can_ask(self.run.state):
                self.run.record(_asked(self.run.state, self.proposer))
                continue
            if interruption := self.evaluate():
                return interruption
            self._learn()

    def _decide(self) -> None:
        fired, decided = decide(self.run.state)
        for event in fired:
            if event not in self.run.state.fired:  # by a process that died before it decided
                self.run.record(event)
        self.run.record(decided)

    def _learn(self) -> None:
        """Tell the search its generation, if that is what was waited for."""
        run, generation = self.run, self.run.state.current
        if generation is None or search_is_over(run.state):
            self.closed(run, None)
        elif generation.closed and judge(run.state).decision in ("continue", "done"):
            if told := self.proposer.tell(generation):
                run.record(told)
            self.closed(run, generation)

    def evaluate(self) -> Ruling | None:
        """Bring every evaluation that the run waits for to its final result.

        Slots that it leaves idle do what else is planned. Returns None when that is done, or else
        what ended it early: a rule that already fires, a cap that nothing more fits under, a
        signal. What is in flight then comes to its end first, unless `stop.now`.
        """
        run, stop = self.run, self.stop
        while True:
            ruling = judge(run.state)
            halted = stop.requested or ruling.decision in ("pause", "stop")
            held_up = None if halted else self._dispatch()
            goes_on = not halted and held_up is None
            if stop.now or not (self._is_awaited() if goes_on else run.state.accounts.holds):
                break
            self._hear()
        if held_up is not None and not run.state.accounts.holds:
            ruling = Ruling(held_up.decision, (held_up,))
        if only_ends_the_search(run.state, ruling):
            put_on_record(run, ruling)
            return None
        if ruling.decision in ("pause", "stop"):
            return ruling
        return INTERRUPTED if stop.requested else None

    def _is_awaited(self) -> bool:
        return any(not batch.closed for batch in blocking_batches(self.run.state))

    def _hear(self) -> None:
        """Settle what has ended within one look."""
        self.look(self.run)
        for outcome in self.executor.wait(WAIT_SECONDS):
            self.run.take(outcome, may_be_cancelled=self.stop.requested)
        self.pace.look(self.run.state)

    def _drained(self) -> bool:
        """Wait for what fills slots; False if a person does not want to."""
        while self.run.state.accounts.holds and not self.stop.now:
            self._hear()
        return not self.run.state.accounts.holds

    def _dispatch(self) -> Reading | None:
        """Start pending evaluations while a slot is free; say what holds up those waited for."""
        run, waited_for = self.run, blocking_batches(self.run.state)
        while self.executor.free() and (pending := next(_pending(run.state), None)):
            batch, key = pending
            if (free_bytes := run.ledger.free_bytes()) < LEAST_FREE_BYTES:
                return disk_full(place_of(run.state, batch), free_bytes)
            may_start = self.pace.admits(run.state)
            attempt = run.reserve(batch, *key) if may_start else run.refusal(batch, *key)
            if attempt is None:
                return None
            if isinstance(attempt, Refusal):
                is_awaited = any(batch is other for other in waited_for)
                return refused(run.state, batch, attempt) if is_awaited else None
            if has_begun(attempt):
                settle_one_abandoned(run, batch.attempts[key][-1])
            else:
                self.executor.submit(attempt)
        return None


def _pending(state: RunState) -> Iterator[Pending]:
    """What is to be done, in the order of its urgency."""
    return ((batch, key) for batch in open_batches(state) for key in batch.pending)


def _asked(state: RunState, proposer: Proposer) -> GenerationAsked:
    number, points = state.begun, proposer.ask()
    return GenerationAsked(
        generation=number,
        points=points,
        seeds=evaluation_seeds(state.plan, number),
    )


def judge_on_record(run: Run) -> Ruling:
    """The ruling; what only ends a search goes on record, and what it found is still compared."""
    ruling = judge(run.state)
    if not only_ends_the_search(run.state, ruling):
        return ruling
    put_on_record(run, ruling)
    return judge(run.state)


def put_on_record(run: Run, ruling: Ruling) -> None:
    """Put the rules that fired on record, each once a generation; a stop again after new caps."""
    known = {(fired.rule, fired.generation) for fired in run.state.fired}
    for trigger in ruling.triggers:
        is_known = (trigger.rule, trigger.generation) in known
        if not is_known or (trigger.decision == "stop" and run.state.ended is None):
            run.record(trigger.fired())


def conclude(run: Run, ruling: Ruling) -> None:
    """Put the ruling on record: the rules that fired, or that the run is done."""
    put_on_record(run, ruling)
    if ruling.decision == "done":
        run.record(Concluded())
