"""A run in hand: its ledger, the state it amounts to, and the attempts they reserve and settle.

The walk through it is `orchestrator.walk`.
"""

import hashlib
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from budgets.accounts import Refusal
from budgets.events import (
    Event,
    Owner,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.ledger import Ledger, Record
from budgets.state import Generation, RunState, Try, apply, fold
from budgets.terms import Plan
from objectives.api import ObjectiveSpec
from objectives.space import SearchSpace
from orchestrator.execution.attempts import read_summary
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.recovery import Unknown, Unstarted, recover
from orchestrator.plan import differences

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
        """Disk first, memory second; an event that cannot follow is refused before either."""
        self._commit(self.ledger.seal(event))

    def _commit(self, record: Record) -> None:
        state = apply(self.state, record)
        self.ledger.append(record)
        self.state = state
        self.observe(state, record.event)

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
        accounts = self.state.accounts.tick(record.elapsed_ms)
        if refusal := accounts.refusal(reserved.reserve_ms):
            return refusal
        attempt = self.attempt(reserved)
        if read_summary(attempt.directory, attempt.attempt_id) is None:
            shutil.rmtree(attempt.directory, ignore_errors=True)
            attempt.directory.mkdir(parents=True)
        self._commit(record)
        return attempt

    def attempt(self, reserved: Reserved) -> Attempt:
        """The attempt a reservation is for: the same one whenever it is asked for."""
        plan = self.state.plan
        point = self.state.generations[reserved.generation].points[reserved.candidate]
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

    def reserved(self, attempt_id: str) -> Reserved:
        """The open reservation of that attempt."""
        reservations = (t.reserved for t in self.state.open_tries())
        return next(r for r in reservations if self._attempt_id(r) == attempt_id)

    def _attempt_id(self, reserved: Reserved) -> str:
        return attempt_id(self.ledger.records[0].digest, reserved)


def attempt_id(genesis: str, reserved: Reserved) -> str:
    """Differs between runs, by the hash of the run's first record, and between attempts."""
    identity = f"{genesis}/{attempt_place(reserved)}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def attempt_place(reserved: Reserved) -> str:
    """The attempt's directory under the run's `eval/`."""
    again = "" if reserved.attempt == 1 else f".{reserved.attempt}"
    return (
        f"gen_{reserved.generation:04d}/cand_{reserved.candidate:04d}/seed_{reserved.seed}{again}"
    )


def open_run(ledger: Ledger, plan: Plan, owner: Owner, observe: Observer) -> Run:
    """The run of `plan`: a new one, or the one in the ledger if it has the same plan.

    Raises PlanChangedError if the ledger belongs to another plan.
    """
    if not ledger.records:
        ledger.append(ledger.seal(Planned(plan=plan)))
    state = fold(ledger.records)
    check_same_plan(ledger.path.parent, state.plan, plan)
    return Run(ledger, state, owner, observe)


def check_same_plan(directory: Path, recorded: Plan, asked: Plan) -> None:
    """Raises PlanChangedError, saying what differs, unless they describe the same run."""
    if changed := differences(recorded, asked):
        raise PlanChangedError(
            f"{directory} holds another plan (recorded -> asked): {'; '.join(changed[:5])}. "
            "Give the new run its own name with --run-id, or repeat the recorded options."
        )


def settle_abandoned(run: Run) -> None:
    """Settle every attempt that nobody settled: adopted if it finished, else charged.

    None of this process's may be in flight.
    """
    for abandoned in run.state.open_tries():
        attempt = run.attempt(abandoned.reserved)
        wait_seconds = 2 * attempt.limits.grace_seconds + 5
        found = recover(attempt.directory, attempt.attempt_id, wait_seconds)
        run.record(_settled_late(abandoned, found))


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


def _one_line(text: str, most: int = 300) -> str:
    """What any ledger, table and terminal can hold of a cause."""
    clean = text.encode("utf-8", "replace").decode()
    line = " ".join("".join(c if c.isprintable() else " " for c in clean).split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def settled(reserved: Reserved, outcome: Outcome, *, recovered: bool = False) -> Settled:
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
        generation=reserved.generation,
        candidate=reserved.candidate,
        seed=reserved.seed,
        attempt=reserved.attempt,
        status=status,
        score=score,
        charged_ms=math.ceil(1000 * outcome.seconds),
        seconds=outcome.seconds,
        startup_seconds=outcome.startup_seconds,
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
        device=outcome.device,
        cause=_one_line(outcome.cause),
        recovered=recovered,
        **measured,
    )
