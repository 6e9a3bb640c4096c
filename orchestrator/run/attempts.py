"""The attempts of a run: how each is reserved, made, settled, tried again and recovered.

All of it follows from the ledger and from an attempt's own files, so an outcome that comes and one
that is found later are settled alike.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from budgets.accounts import Accounts, Refusal
from budgets.events import Event, Owner, Reserved, Settled, Status
from budgets.failures import cause_of, is_lost, is_unexplained, was_given_up
from budgets.formatting import one_line
from budgets.ledger import LEAST_FREE_BYTES, Ledger, Record
from budgets.rules import refusal_of
from budgets.state import Attempt as Recorded
from budgets.state import Batch, Observer, RunState, apply, ticked
from budgets.storage import unused
from objectives.registry import varied
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.files import (
    CONFIG,
    STARTED,
    SUMMARY,
    Started,
    read,
    recover,
)
from orchestrator.execution.trainer import CAUSE_CHARACTERS
from orchestrator.records.objective import knobs_of
from orchestrator.records.runs import attempt_place


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

    def watch(self, also: Observer) -> None:
        """Tell one more of every record from now on."""
        first = self.observe

        def both(state: RunState, event: Event) -> None:
            first(state, event)
            also(state, event)

        self.observe = both

    def record(self, event: Event) -> None:
        """An event that cannot follow is refused before it is written, and then nothing changed.

        When writing fails, the state is ahead of the disk: the run must be opened anew.
        """
        self._commit(self.ledger.seal(event))

    def _commit(self, record: Record) -> None:
        apply(self.state, record)
        self.ledger.append(record)
        self.observe(self.state, record.event)

    def take(self, outcome: Outcome, *, may_be_cancelled: bool = False) -> None:
        """Settle the attempt that ended so; the outcome of one that is settled changes nothing.

        An attempt that nobody here has cancelled was lost, whoever told its supervisor to end.
        """
        for attempt in self.state.running_attempts():
            if attempt_id(self.state, attempt.reserved) == outcome.attempt_id:
                end = settled(attempt.reserved, outcome)
                if end.status is Status.CANCELLED and not may_be_cancelled:
                    end = replace(end, status=Status.LOST)
                return self.record(self._excused(judged(self.state, end)))
        return None

    def _excused(self, own: Settled) -> Settled:
        """A failure on a disk that is full says nothing of its candidate: it is pending again."""
        if own.status is not Status.ERROR or self.ledger.free_bytes() >= LEAST_FREE_BYTES:
            return own
        cause = one_line(f"the run's disk is full: {own.cause}")
        return replace(own, status=Status.LOST, retry=False, cause=cause)

    def reserve(self, batch: Batch, candidate: int, seed: int) -> Attempt | Refusal:
        """Set an attempt's worst case aside and make its directory; or say why not.

        The directory is empty, unless this very attempt has begun already (see `has_begun`).
        """
        reserved, attempt = self._next(batch, candidate, seed)
        record = self.ledger.seal(reserved)
        if refusal := self._refusal(ticked(self.state.accounts, record), reserved):
            return refusal
        if not has_begun(attempt):
            _make_empty(attempt.directory)
        self._commit(record)
        return attempt

    def refusal(self, batch: Batch, candidate: int, seed: int) -> Refusal | None:
        """Why that attempt may not start now; None when it may. Changes nothing."""
        reserved, _ = self._next(batch, candidate, seed)
        return self._refusal(ticked(self.state.accounts, self.ledger.seal(reserved)), reserved)

    def _next(self, batch: Batch, candidate: int, seed: int) -> tuple[Reserved, Attempt]:
        reserved = Reserved(
            comparison=batch.comparison,
            generation=batch.number,
            candidate=candidate,
            seed=seed,
            attempt=len(batch.attempts.get((candidate, seed), ())) + 1,
            reserve_ms=0,
            slot=self.state.accounts.free_slot,
        )
        attempt = self.attempt(reserved)
        return replace(reserved, reserve_ms=attempt.limits.reserve_ms), attempt

    def _refusal(self, accounts: Accounts, reserved: Reserved) -> Refusal | None:
        """Why it may not start now: a longer variant may take more than what is left."""
        batch = self.state.batch(reserved)
        refusal = refusal_of(self.state, batch, reserved.candidate, accounts)
        compares = batch.comparison is not None
        return refusal or accounts.refusal(reserved.reserve_ms, compares=compares)

    def attempt(self, reserved: Reserved) -> Attempt:
        """The attempt a reservation is for: the same one whenever it is asked for."""
        plan, batch = self.state.plan, self.state.batch(reserved)
        spec = plan.objective
        if changed := batch.configurations[reserved.candidate].settings:
            spec = varied(spec, changed)
        return Attempt(
            attempt_id=attempt_id(self.state, reserved),
            directory=self.directory / "eval" / attempt_place(reserved),
            objective=spec,
            knobs=knobs_of(batch, reserved.candidate, plan.space),
            seed=reserved.seed,
            limits=plan.limits.stretched(batch.configurations[reserved.candidate].cost_factor),
            owner=self.owner,
            pinned=plan.provenance,
        )


def has_begun(attempt: Attempt) -> bool:
    """Whether this attempt was asked for before: its reservation was in a part of the ledger that
    is lost."""
    known = (
        read(Attempt, attempt.directory / CONFIG),
        read(Started, attempt.directory / STARTED),
        read(Outcome, attempt.directory / SUMMARY),
    )
    return any(own is not None and own.attempt_id == attempt.attempt_id for own in known)


def _make_empty(directory: Path) -> None:
    """An empty directory there; what was in its place is moved beside it, never deleted."""
    for part in (directory.parent, directory.parent.parent):
        if part.is_symlink():
            raise ValueError(f"{part} is a symbolic link: expected a directory of the run's own")
    if directory.exists() or directory.is_symlink():
        directory.rename(unused(directory.with_name(f"{directory.name}.other")))
    directory.mkdir(parents=True)


def settle_abandoned(run: Run) -> None:
    """Settle every attempt that nobody settled: adopted if it finished, else charged.

    None of this process's may be in flight.
    """
    for abandoned in run.state.running_attempts():
        settle_one_abandoned(run, abandoned)


def settle_one_abandoned(run: Run, abandoned: Recorded) -> None:
    """Settle an attempt that another process began, once nothing of it is alive here."""
    attempt = run.attempt(abandoned.reserved)
    wait_seconds = 2 * attempt.limits.grace_seconds + 5
    found = recover(attempt, wait_seconds)
    run.record(judged(run.state, settled(abandoned.reserved, found, recovered=True)))


def attempt_id(state: RunState, reserved: Reserved | Settled) -> str:
    """Differs between runs, by the hash of the run's first record, between attempts and points.

    So nobody takes a result for that of another point, whatever became of the ledger in between.
    """
    own = state.batch(reserved).configurations[reserved.candidate]
    identity = f"{state.genesis}/{attempt_place(reserved)}/{own.point}"
    if own.settings:
        identity += f"/{sorted(own.settings.items())}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def settles(outcome: Outcome, recorded: Settled) -> bool:
    """Whether this outcome, not silence, is what the attempt was settled with.

    An error of the machine's, of the setup or on a full disk was settled as lost, and so was what
    somebody else cancelled.
    """
    same = {recorded.status}
    if was_given_up(recorded.status, recorded.cause):
        same = {Status.LOST, Status.ERROR, Status.CANCELLED}
    return outcome.status in same and outcome.seconds == recorded.seconds


def settled(reserved: Reserved | Settled, outcome: Outcome, *, recovered: bool = False) -> Settled:
    """The ledger's word for how an attempt ended. Only finite numbers enter it."""
    measurement = outcome.measurement
    status, score = outcome.status, None
    if status is Status.OK:
        if measurement is not None and math.isfinite(measurement.score):
            score = measurement.score
        else:
            status = Status.NAN
    measured = {}
    if measurement is not None:
        fields = ("train_seconds", "steps", "tokens", "train_flops", "eval_flops")
        measured = {name: getattr(measurement, name) for name in fields}
        measured["metrics"] = {k: v for k, v in measurement.metrics.items() if math.isfinite(v)}
    return Settled(
        comparison=reserved.comparison,
        generation=reserved.generation,
        candidate=reserved.candidate,
        seed=reserved.seed,
        attempt=reserved.attempt,
        status=status,
        score=score,
        charged_ms=math.ceil(1000 * outcome.seconds - 1e-6),  # of n / 1000 s: n, not one more
        seconds=outcome.seconds,
        startup_seconds=outcome.startup_seconds,
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
        device=outcome.device,
        cause=one_line(outcome.cause, CAUSE_CHARACTERS),
        recovered=recovered,
        **measured,
    )


def ends(attempts: Iterable[Recorded]) -> tuple[Settled, ...]:
    """How those ended that have."""
    return tuple(attempt.settled for attempt in attempts if attempt.settled is not None)


def before(batch: Batch, place: Reserved | Settled) -> tuple[Settled, ...]:
    """How earlier attempts at the same evaluation ended."""
    return ends(batch.attempts.get((place.candidate, place.seed), ())[: place.attempt - 1])


def judged(state: RunState, end: Settled) -> Settled:
    """`end` as it goes on record: as what it is, or pending again for a reason.

    What the infrastructure did is `lost`, and so is what found that nothing can be evaluated. An
    evaluation that is lost again and again is its configuration's own failure in the end. What may
    have been a machine's doing is retried once.
    """
    cause = cause_of(end.status, end.cause)
    if cause is None or end.status is Status.CANCELLED:
        return end
    if cause.whose in ("infrastructure", "setup"):
        return _given_up(state, replace(end, status=Status.LOST))
    earlier = before(state.batch(end), end)
    if cause.whose == "ambiguous" and all(not one.retry for one in earlier):
        return replace(end, retry=True)
    return end


def _given_up(state: RunState, lost: Settled) -> Settled:
    """`lost`, or an error where the evaluation is lost too often.

    That is `attempts_per_session` times in all, once such losses have paused the run and somebody
    has resumed it. Attempts that ended with their orchestrator do not count.
    """
    batch, limit = state.batch(lost), state.plan.thresholds.attempts_per_session
    ended = (*before(batch, lost), lost)
    counted = [e for e in ended if is_unexplained(e.status, e.cause) and not e.recovered]
    if lost not in counted or len(counted) < limit:
        return lost
    session = batch.attempts[lost.candidate, lost.seed][lost.attempt - 1].session
    if not any(_most_losses(own, before=session) >= limit for own in _all_attempts(state)):
        return lost
    cause = one_line(f"lost {len(counted)} times: {lost.cause}")
    return replace(lost, status=Status.ERROR, cause=cause)


def _all_attempts(state: RunState) -> Iterator[tuple[Recorded, ...]]:
    """Of every evaluation."""
    return (own for batch in state.batches() for own in batch.attempts.values())


def _most_losses(attempts: tuple[Recorded, ...], before: int) -> int:
    """How many of them one session lost, of those before that one."""
    lost = (t for t in attempts if t.settled and is_lost(t.settled.status, t.settled.cause))
    return max(Counter(t.session for t in lost if t.session < before).values(), default=0)
