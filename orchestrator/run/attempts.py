"""The attempts of a run: how each is reserved, settled, retried and recovered.

All of it follows from the ledger and the attempt's own files, so an outcome is settled the same way
whether it arrives or is found later.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from budgets.accounts import Attempt as Recorded
from budgets.accounts import Refusal
from budgets.events import Event, Owner, Reserved, Settled, Status
from budgets.failure_causes import cause_of, is_unexplained
from budgets.formatting import one_line
from budgets.ledger import LEAST_FREE_BYTES, Ledger, Record
from budgets.rules import refusal_of
from budgets.state import Batch, Observer, RunState, apply
from budgets.storage import unused
from objectives.registry import varied
from orchestrator.execution.api import (
    CONFIG,
    STARTED,
    SUMMARY,
    Attempt,
    Outcome,
    Started,
    read_own,
    recover,
)
from orchestrator.execution.trainer import CAUSE_CHARACTERS


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

    def take(self, outcome: Outcome) -> None:
        """Settle the attempt of this outcome; do nothing if it is settled already."""
        for attempt in self.state.running_attempts():
            if attempt_id(self.state, attempt.reserved) == outcome.attempt_id:
                end = settled(attempt.reserved, outcome)
                return self.record(self._excused(judged(self.state, end)))
        return None

    def _excused(self, end: Settled) -> Settled:
        """Turn a failure while the disk is full into a loss: it tells nothing of a candidate."""
        is_odd = end.status is Status.ERROR or is_unexplained(end.status, end.cause)
        if not is_odd or self.ledger.free_bytes() >= LEAST_FREE_BYTES:
            return end
        cause = one_line(f"the run's disk is full: {end.cause}")
        return end.model_copy(update={"status": Status.LOST, "retry": False, "cause": cause})

    def prepare(self, batch: Batch, candidate: int, seed: int) -> tuple[Record, Attempt] | Refusal:
        """Return the reservation and the attempt for `reserve`, or why it may not start now."""
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
        reserved = reserved.model_copy(update={"reserve_ms": attempt.limits.reserve_ms})
        record = self.ledger.seal(reserved)
        accounts = self.state.accounts.tick(record.elapsed_ms, record.at_ms)
        return refusal_of(self.state, batch, candidate, accounts) or (record, attempt)

    def reserve(self, record: Record, attempt: Attempt) -> bool:
        """Record a reservation and make the attempt's directory, which is empty.

        Return False if the attempt was started before, by a reservation that the ledger has lost.
        """
        directory = attempt.directory
        if not (begun := has_begun(attempt)):
            if directory.exists() or directory.is_symlink():  # renamed, never deleted
                directory.rename(unused(directory.with_name(f"{directory.name}.other")))
            directory.mkdir(parents=True)
        self._commit(record)
        return not begun

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


def has_begun(attempt: Attempt) -> bool:
    """Return whether this attempt was started before."""
    return bool(  # an evaluation may overwrite some of them: it runs in that directory
        read_own(attempt, Attempt, CONFIG)
        or read_own(attempt, Started, STARTED)
        or read_own(attempt, Outcome, SUMMARY)
    )


def settle_abandoned(run: Run) -> None:
    """Settle every running attempt by its files: with its result, or as lost.

    None of them may be running under this process.
    """
    for abandoned in run.state.running_attempts():
        settle_one_abandoned(run, abandoned)


def settle_one_abandoned(run: Run, abandoned: Recorded) -> None:
    """Settle an attempt that another process started, once none of its processes lives here."""
    attempt = run.attempt(abandoned.reserved)
    wait_seconds = 2 * attempt.limits.grace_seconds + 5
    outcome = recover(attempt, wait_seconds)
    run.record(judged(run.state, settled(abandoned.reserved, outcome, recovered=True)))


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
    measurement = outcome.measurement
    status, score = outcome.status, None
    if status is Status.OK:
        if measurement is not None and math.isfinite(measurement.score):
            score = measurement.score
        else:
            status = Status.NAN
    place = ("comparison", "generation", "candidate", "seed", "attempt")
    found = {name: getattr(reserved, name) for name in place}
    fields = ("seconds", "startup_seconds", "cpu_seconds", "peak_memory_bytes", "device")
    found |= {name: getattr(outcome, name) for name in fields}
    if measurement is not None:
        fields = ("train_seconds", "steps", "tokens", "train_flops", "eval_flops")
        found |= {name: getattr(measurement, name) for name in fields}
        found["metrics"] = {k: v for k, v in measurement.metrics.items() if math.isfinite(v)}
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

    A failure of the infrastructure or of the setup is `lost`. An evaluation that is lost again and
    again becomes its configuration's failure. A failure that may be the machine's is retried once.
    """
    cause = cause_of(end.status, end.cause)
    if cause is None or end.status is Status.CANCELLED:
        return end
    attempts = state.batch(end).attempts[end.candidate, end.seed][: end.attempt - 1]
    earlier = [one.settled for one in attempts if one.settled is not None]
    if cause.whose in ("infrastructure", "setup"):
        return _blamed(state, [*earlier, end.model_copy(update={"status": Status.LOST})])
    if cause.whose == "ambiguous" and not any(one.retry for one in earlier):
        return end.model_copy(update={"retry": True})
    return end


def _blamed(state: RunState, ends: Sequence[Settled]) -> Settled:
    """Return the last, a loss; an error if the evaluation was lost `attempts_per_session` times.

    Only after such losses have paused the run and a person has resumed it. Attempts that ended
    with their orchestrator do not count.
    """
    lost, limit = ends[-1], state.plan.thresholds.attempts_per_session
    counted = [one for one in ends if is_unexplained(one.status, one.cause) and not one.recovered]
    has_paused = any(fired.rule == "infrastructure" for fired in state.fired)
    if lost not in counted or len(counted) < limit or not has_paused:
        return lost
    cause = one_line(f"lost {len(counted)} times: {lost.cause}")
    return lost.model_copy(update={"status": Status.ERROR, "cause": cause})
