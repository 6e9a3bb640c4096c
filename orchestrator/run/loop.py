"""The loop of a run: ask, reserve, evaluate, settle, tell, judge."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from types import FrameType
from typing import Protocol, Self

from budgets.accounts import Refusal
from budgets.events import Fired, GenerationAsked, GenerationTold
from budgets.ledger import LEAST_FREE_BYTES
from budgets.rules import (
    Ruling,
    disk_full,
    judge,
    only_ends_the_search,
    place_of,
    refused,
)
from budgets.schedule import blocking_batches, next_action, open_batches, search_is_over
from budgets.state import Batch
from budgets.verdict import decide
from orchestrator.capacity import Pace
from orchestrator.execution.api import INTERRUPTS, Executor
from orchestrator.plan.comparisons import due, evaluation_seeds
from orchestrator.run.attempts import Run, settle_one_abandoned

WAIT_SECONDS = 0.5
"""Longest wait for outcomes before signals and budgets are checked again."""

INTERRUPTED = Ruling("continue")
"""A person stopped the run, which can be resumed."""


def at_once(text: str) -> None:
    """Write a line to stderr from a signal's handler, whatever is being printed."""
    os.write(2, f"\n{text}\n".encode())


@dataclass
class Stop:
    """A request to stop the run, by its owner or, once installed, by signals.

    The first SIGINT or SIGTERM drains the run, the second kills it. So does a drain that takes
    longer than `drain_seconds`.
    """

    drain_seconds: float | None = None
    announce: Callable[[str], None] = at_once
    requested: bool = False  # start no new evaluation; running ones may finish
    signum: int = 0
    kill_at: float = inf  # by the monotonic clock

    @property
    def now(self) -> bool:
        """Whether running evaluations are to be killed too."""
        return time.monotonic() >= self.kill_at

    def install(self) -> Self:
        """Handle signals from now on."""
        for signum in INTERRUPTS:
            signal.signal(signum, self._receive)
        return self

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self.announce("Finishing what is running; interrupt again to kill it.")
        seconds = 0.0 if self.requested else self.drain_seconds
        self.kill_at = inf if seconds is None else time.monotonic() + seconds
        self.requested, self.signum = True, signum


class Proposer(Protocol):
    """Proposes the points of a generation and learns from their scores."""

    def ask(self) -> tuple[tuple[float, ...], ...]: ...

    def tell(self, generation: Batch) -> GenerationTold | None: ...


@dataclass(frozen=True)
class Given:
    """Proposes fixed points and learns nothing: a calibration, a check, a campaign."""

    points: tuple[tuple[float, ...], ...]

    def ask(self) -> tuple[tuple[float, ...], ...]:
        return self.points

    def tell(self, generation: Batch) -> None:
        """Learn nothing."""


@dataclass
class Loop:
    """Carries out a run until something ends it.

    `closed` is called with each generation after it is told, and with None after comparisons;
    `look` each time the run waits for outcomes.
    """

    run: Run
    proposer: Proposer
    executor: Executor
    stop: Stop
    closed: Callable[[Run, Batch | None], None]
    paces: Sequence[Pace] = ()
    look: Callable[[Run], None] = lambda run: None  # noqa: ARG005 - no effect by default

    def to_its_end(self) -> Ruling:
        """Ask, evaluate and tell until a rule, a cap, a signal or the plan ends the run."""
        while True:
            if judge(self.run.state).decision != "continue":
                # First let everything running end: a reservation is more than what it will cost.
                if not self._drained():
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
            state = self.run.state
            if state.current is None and next_action(state) == "generation":
                points, seeds = self.proposer.ask(), evaluation_seeds(state.plan, state.begun)
                asked = GenerationAsked(generation=state.begun, points=points, seeds=seeds)
                self.run.record(asked)
                continue
            if interruption := self.evaluate():
                return interruption
            self._learn()

    def _decide(self) -> None:
        fired, decided = decide(self.run.state)
        for event in fired:
            if event not in self.run.state.fired:  # an earlier session may have recorded it
                self.run.record(event)
        self.run.record(decided)

    def _learn(self) -> None:
        """Tell the search its generation if that is complete."""
        run, generation = self.run, self.run.state.current
        if generation is None or search_is_over(run.state):
            self.closed(run, None)
        elif generation.closed and judge(run.state).decision in ("continue", "done"):
            if told := self.proposer.tell(generation):
                run.record(told)
            self.closed(run, generation)

    def evaluate(self) -> Ruling | None:
        """Complete every evaluation that blocks the run; use idle slots for other planned ones.

        Returns None when that is done, or what ended it early: a rule that fires, a cap under which
        nothing more fits, a signal. Running evaluations are then waited for, unless `stop.now`.
        """
        run, stop = self.run, self.stop
        while True:
            ruling = judge(run.state)
            is_halted = stop.requested or ruling.decision in ("pause", "stop")
            obstacle = None if is_halted else self._dispatch()
            goes_on = not is_halted and obstacle is None
            is_open = any(not batch.closed for batch in blocking_batches(run.state))
            if stop.now or not (is_open if goes_on else run.state.accounts.holds):
                break
            self._settle_outcomes()
        if obstacle is not None and not run.state.accounts.holds:
            ruling = Ruling(obstacle.decision, (obstacle,))
        if only_ends_the_search(run.state, ruling):
            put_on_record(run, ruling)
            return None
        if ruling.decision in ("pause", "stop"):
            return ruling
        return INTERRUPTED if stop.requested else None

    def _settle_outcomes(self) -> None:
        """Settle what ends within WAIT_SECONDS."""
        self.look(self.run)
        for outcome in self.executor.wait(WAIT_SECONDS):
            self.run.take(outcome)
        for pace in self.paces:
            pace.look(self.run.state)

    def _drained(self) -> bool:
        """Wait until nothing is running; return False if a person stops that."""
        while self.run.state.accounts.holds and not self.stop.now:
            self._settle_outcomes()
        return not self.run.state.accounts.holds

    def _dispatch(self) -> Fired | None:
        """Start pending evaluations on free slots; return what prevents a blocking one."""
        run, blocking = self.run, blocking_batches(self.run.state)
        while self.executor.free():
            pending = ((batch, key) for batch in open_batches(run.state) for key in batch.pending)
            if (first := next(pending, None)) is None:
                break
            batch, key = first  # the most urgent one: its batch, its candidate and seed
            if (free_bytes := run.ledger.free_bytes()) < LEAST_FREE_BYTES:
                return disk_full(place_of(run.state, batch), free_bytes)
            prepared = run.prepare(batch, *key)
            if isinstance(prepared, Refusal):
                is_blocking = any(batch is other for other in blocking)
                return refused(run.state, batch, prepared) if is_blocking else None
            if not all(pace.admits(run.state) for pace in self.paces):
                return None
            record, attempt = prepared
            if run.reserve(record, attempt):
                self.executor.submit(attempt)
            else:
                settle_one_abandoned(run, batch.attempts[key][-1])
        return None


def judge_on_record(run: Run) -> Ruling:
    """Return the ruling. A rule that only ends the search is recorded, and comparisons go on."""
    ruling = judge(run.state)
    if not only_ends_the_search(run.state, ruling):
        return ruling
    put_on_record(run, ruling)
    return judge(run.state)


def put_on_record(run: Run, ruling: Ruling) -> None:
    """Record the rules that fired, each once per generation; a stop again after new caps."""
    known = {(fired.rule, fired.generation) for fired in run.state.fired}
    for trigger in ruling.triggers:
        is_known = (trigger.rule, trigger.generation) in known
        if not is_known or (trigger.decision == "stop" and run.state.ended is None):
            run.record(trigger)
