"""One run: ask, reserve, evaluate, settle, tell, judge.

All that is decided follows from the ledger and the attempts' own files, so an outcome is settled
the same way whether it arrives or is found later.
"""

import hashlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol, Self

from budgets.accounts import Attempt as Recorded
from budgets.events import Event, Fired, GenerationTold, Owner, Reserved, Settled, Status
from budgets.failure_causes import cause_of, is_unexplained
from budgets.formatting import one_line
from budgets.ledger import LEAST_FREE_BYTES, Ledger, Record
from budgets.plan import Configuration
from budgets.rules import Ruling, disk_full, judge, no_room, only_ends_the_search
from budgets.schedule import blocking_batches, next_action, open_batches
from budgets.state import Batch, Observer, RunState, apply
from budgets.storage import unused
from budgets.verdict import Point, decide
from objectives.registry import varied
from orchestrator.capacity import Pace
from orchestrator.execution import api
from orchestrator.execution.api import Attempt, Executor, Outcome, Started
from orchestrator.execution.trainer import CAUSE_CHARACTERS
from orchestrator.plan.comparisons import due, next_generation

WAIT_SECONDS = 0.5
"""Longest wait for outcomes before signals and budgets are checked again."""

INTERRUPTED = Ruling("continue")
"""A person stopped the run, which can be resumed."""

PLACE = ("comparison", "generation", "candidate", "seed", "attempt")
OBSERVED = ("seconds", "startup_seconds", "cpu_seconds", "peak_memory_bytes", "device")
REPORTED = ("train_seconds", "steps", "tokens", "train_flops", "eval_flops")

Moment = Literal["begun", "generation", "batch", "left"]
"""A session begins; the search was told a generation; a comparison begins; the session ends."""


# What a person, a search and an executor are to the loop


def at_once(text: str) -> None:
    """Write a line to stderr from a signal's handler, whatever is being printed."""
    os.write(2, f"\n{text}\n".encode())


@dataclass
class Stop:
    """A request to stop the run, by its owner or by the signals of its block.

    The first SIGINT or SIGTERM drains the run, the second kills it. So does a drain that takes
    longer than `drain_seconds`.
    """

    drain_seconds: float | None = None
    announce: Callable[[str], None] = at_once
    requested: bool = False  # start no new evaluation; running ones may finish
    signum: int = 0
    kill_at: float = math.inf  # by the monotonic clock
    _before: dict[int, Any] = field(default_factory=dict)  # handlers

    @property
    def now(self) -> bool:
        """Whether running evaluations are to be killed too."""
        return time.monotonic() >= self.kill_at

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # others cannot
            for signum in api.INTERRUPTS:
                self._before[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self.announce("Finishing what is running; interrupt again to kill it.")
        seconds = 0.0 if self.requested else self.drain_seconds
        self.kill_at = math.inf if seconds is None else time.monotonic() + seconds
        self.requested, self.signum = True, signum


class Learner(Protocol):
    """Proposes the points of a generation and learns from their scores."""

    def ask(self) -> tuple[Point, ...]: ...

    def tell(self, generation: Batch) -> GenerationTold: ...


Proposer = Learner | tuple[Configuration, ...]
"""A search, or the whole of a calibration, a check or a campaign."""


# How an attempt's end is recorded


def attempt_id(state: RunState, reserved: Reserved | Settled) -> str:
    """Return an id that is unique to the run (by its first record), the attempt and its point.

    So no result is taken for that of another point, even if the ledger has lost records.
    """
    configuration = state.batch(reserved).configurations[reserved.candidate]
    identity = f"{state.genesis}/{reserved.place}/{configuration.point}"
    if configuration.settings:
        identity += f"/{sorted(configuration.settings.items())}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def settled(reserved: Reserved | Settled, outcome: Outcome, *, recovered: bool = False) -> Settled:
    """Return the ledger's event for an outcome. Only finite numbers enter it."""
    own, status, score = outcome.measurement, outcome.status, None
    found: dict[str, Any] = {name: getattr(reserved, name) for name in PLACE}
    found |= {name: getattr(outcome, name) for name in OBSERVED}
    if own is not None:
        found |= {name: getattr(own, name) for name in REPORTED}
        found["metrics"] = {k: v for k, v in own.metrics.items() if math.isfinite(v)}
    if status is Status.OK:
        score = own.score if own is not None and math.isfinite(own.score) else None
        status = Status.NAN if score is None else status
    return Settled(
        status=status,
        score=score,
        charged_ms=math.ceil(1000 * outcome.seconds - 1e-6),  # n / 1000 s cost n, not n + 1
        cause=one_line(outcome.cause, CAUSE_CHARACTERS),
        recovered=recovered,
        **found,
    )


def judged(state: RunState, end: Settled) -> Settled:
    """Return the end as it is recorded: as it is, as lost, or to be retried.

    A failure that may be the machine's is retried once; one of the infrastructure or of the setup
    is `lost`. An evaluation that is lost `attempts_per_session` times becomes its configuration's
    failure, but only after such losses have paused the run and a person has resumed it; attempts
    that ended with their orchestrator do not count.
    """
    if end.status in (Status.OK, Status.CANCELLED):
        return end
    cause = cause_of(end.status, end.cause)
    if cause is None or cause.whose == "configuration":
        return end
    attempts = state.batch(end).attempts[end.candidate, end.seed][: end.attempt - 1]
    earlier = [one.settled for one in attempts if one.settled is not None]
    if cause.whose == "ambiguous":
        return end if any(one.retry for one in earlier) else end.model_copy(update={"retry": True})
    lost = end.model_copy(update={"status": Status.LOST})
    limit = state.plan.thresholds.attempts_per_session
    ends = [one for one in (*earlier, lost) if is_unexplained(one.status, one.cause)]
    counted = [one for one in ends if not one.recovered]
    has_paused = any(fired.rule == "infrastructure" for fired in state.fired)
    if lost not in counted or len(counted) < limit or not has_paused:
        return lost
    cause_text = one_line(f"lost {len(counted)} times: {lost.cause}")
    return lost.model_copy(update={"status": Status.ERROR, "cause": cause_text})


# A run and its loop


@dataclass
class Run:
    """An open run: its ledger, and the state that the ledger amounts to.

    Every record is passed to the observers.
    """

    ledger: Ledger
    state: RunState
    owner: Owner
    observers: list[Observer]

    @property
    def directory(self) -> Path:
        return self.ledger.path.parent.absolute()

    def record(self, event: Event) -> None:
        """Append an event. One that cannot follow is refused and changes nothing.

        If writing fails, the state is ahead of the disk: the run must be opened again.
        """
        self._commit(self.ledger.seal(event))

    def _commit(self, record: Record) -> None:
        apply(self.state, record)
        self.ledger.append(record)
        for observe in self.observers:
            observe(self.state, record.event)

    def put_on_record(self, ruling: Ruling) -> None:
        """Record the rules that fired, each once per generation; a stop again after new caps."""
        known = {(fired.rule, fired.generation) for fired in self.state.fired}
        for trigger in ruling.triggers:
            is_known = (trigger.rule, trigger.generation) in known
            if not is_known or (trigger.decision == "stop" and self.state.ended is None):
                self.record(trigger)

    # An attempt: reserved, then settled by its outcome, or by its files

    def prepare(self, batch: Batch, candidate: int, seed: int) -> tuple[Record, Attempt] | Fired:
        """Return the reservation and the attempt for `reserve`, or why it may not start now."""
        accounts, own = self.state.accounts, batch.configurations[candidate]
        reserved = Reserved(
            comparison=batch.comparison,
            generation=batch.number,
            candidate=candidate,
            seed=seed,
            attempt=len(batch.attempts.get((candidate, seed), ())) + 1,
            reserve_ms=self.state.plan.limits.stretched(own.cost_factor).reserve_ms,
            slot=accounts.free_slot,
        )
        record = self.ledger.seal(reserved)
        later = accounts.tick(record.elapsed_ms, record.at_ms)
        return no_room(self.state, batch, candidate, later) or (record, self.attempt(reserved))

    def reserve(self, record: Record, attempt: Attempt) -> bool:
        """Record a reservation; make the attempt's directory, with its config alone.

        Return False if the attempt was started before, by a reservation that the ledger has lost.
        """
        # an evaluation may overwrite some of them: it runs in that directory
        found = (
            api.read_own(attempt, Attempt),
            api.read_own(attempt, Started),
            api.read_own(attempt, Outcome),
        )
        if is_new := not any(found):
            directory = attempt.directory
            if os.path.lexists(directory):  # renamed, never deleted
                directory.rename(unused(directory.with_name(f"{directory.name}.other")))
            directory.mkdir(parents=True)
        self._commit(record)
        if is_new:
            api.write_model(attempt.directory, attempt)
        return is_new

    def attempt(self, reserved: Reserved) -> Attempt:
        """Return the attempt of a reservation, always the same one."""
        plan = self.state.plan
        configuration = self.state.batch(reserved).configurations[reserved.candidate]
        spec = plan.objective
        if configuration.settings:
            spec = varied(spec, configuration.settings)
        return Attempt(
            attempt_id=attempt_id(self.state, reserved),
            directory=self.directory / "eval" / reserved.place,
            objective=spec,
            knobs=configuration.knobs_in(plan.space),
            seed=reserved.seed,
            limits=plan.limits.stretched(configuration.cost_factor),
            owner=self.owner,
            pinned=plan.provenance,
        )

    def take(self, outcome: Outcome) -> None:
        """Settle the attempt of this outcome; do nothing if it is settled already.

        A failure while the disk is full tells nothing of a candidate: the attempt counts as lost.
        """
        running = (one.reserved for one in self.state.accounts.holds.values())
        own = (one for one in running if attempt_id(self.state, one) == outcome.attempt_id)
        if (reserved := next(own, None)) is None:
            return
        end = judged(self.state, settled(reserved, outcome))
        is_odd = end.status in (Status.ERROR, Status.LOST)
        if is_odd and self.ledger.free_bytes() < LEAST_FREE_BYTES:
            cause = one_line(f"the run's disk is full: {end.cause}")
            end = end.model_copy(update={"status": Status.LOST, "retry": False, "cause": cause})
        self.record(end)

    def settle_abandoned(self, *attempts: Recorded) -> None:
        """Settle these attempts, or all that run, by their files: with a result, or as lost.

        None of them may be running under this process; another may have started them.
        """
        for abandoned in attempts or tuple(self.state.accounts.holds.values()):
            attempt = self.attempt(abandoned.reserved)
            outcome = api.recover(attempt, 2 * attempt.limits.grace_seconds + 5)
            end = settled(abandoned.reserved, outcome, recovered=True)
            self.record(judged(self.state, end))


@dataclass
class Loop:
    """Carries out a run until something ends it.

    `report` is called when the search was told a generation and when a comparison begins; `look`
    each time the run waits for outcomes; `warn` too, to say the executor's new warnings.
    """

    run: Run
    proposer: Proposer
    executor: Executor
    stop: Stop
    report: Callable[[Moment], None]
    paces: Sequence[Pace]
    look: Callable[[Run], None]
    warn: Callable[[], None]

    def to_its_end(self) -> Ruling:
        """Ask, evaluate and tell until a rule, a cap, a signal or the plan ends the run.

        While evaluations run nothing ends it, unless `stop.now`: a reservation is more than what an
        evaluation will cost.
        """
        run, stop = self.run, self.stop
        while not stop.now:
            ruling = judge(run.state)
            goes_on = ruling.decision == "continue" and not stop.requested
            if goes_on and self._advance():
                continue
            obstacle = self._dispatch() if goes_on else None
            if obstacle is not None:
                ruling = Ruling(obstacle.decision, (obstacle,))
            elif goes_on and self._learn():
                continue
            if run.state.accounts.holds or (goes_on and obstacle is None):
                self._settle_outcomes()
            elif only_ends_the_search(run.state, ruling):
                run.put_on_record(ruling)
            else:
                return ruling
        return INTERRUPTED

    def _advance(self) -> bool:
        """Record what follows without an evaluation; return whether anything does."""
        run, state, own = self.run, self.run.state, self.proposer
        step = next_action(state)
        if step == "generation" and state.current is None:
            if not isinstance(own, tuple):
                own = tuple(Configuration(name="", point=point) for point in own.ask())
            run.record(next_generation(state, own))
        elif step == "decide" and not state.accounts.holds:
            fired, decided = decide(state)
            for event in fired:
                if event not in state.fired:  # an earlier session may have recorded it
                    run.record(event)
            run.record(decided)
        elif step != "generation" and (comparison := due(state)) is not None:
            run.record(comparison)
            self.report("batch")
        else:
            return False
        return True

    def _learn(self) -> bool:
        """Tell the search its generation; return False if that is not complete."""
        run, own, current = self.run, self.proposer, self.run.state.current
        if isinstance(own, tuple) or current is None or not current.closed:
            return False
        may_learn = judge(run.state).decision == "continue"  # also after a result found on disk
        if not may_learn or next_action(run.state) != "generation":  # or the search is over
            return False
        run.record(own.tell(current))
        self.report("generation")
        return True

    def _dispatch(self) -> Fired | None:
        """Start pending evaluations on free slots; return what prevents one that blocks the run."""
        run = self.run
        while self.executor.free():
            pending = ((batch, key) for batch in open_batches(run.state) for key in batch.pending)
            if (first := next(pending, None)) is None:
                break
            batch, key = first  # the most urgent one: its batch, its candidate and seed
            if (free_bytes := run.ledger.free_bytes()) < LEAST_FREE_BYTES:
                return disk_full(run.state, batch, free_bytes)
            prepared = run.prepare(batch, *key)
            if isinstance(prepared, Fired):
                is_blocking = any(batch is other for other in blocking_batches(run.state))
                return prepared if is_blocking else None
            if not all(pace.admits(run.state) for pace in self.paces):
                break
            record, attempt = prepared
            if run.reserve(record, attempt):
                self.executor.submit(attempt)
            else:
                run.settle_abandoned(batch.attempts[key][-1])
        return None

    def _settle_outcomes(self) -> None:
        """Settle what ends within WAIT_SECONDS."""
        self.look(self.run)
        for outcome in self.executor.wait(WAIT_SECONDS):
            self.run.take(outcome)
        self.warn()
        for pace in self.paces:
            pace.look(self.run.state)
