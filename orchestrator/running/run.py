"""A run in hand: its ledger, the state it amounts to, and the attempts they reserve and settle.

The walk through it is `orchestrator.running.walk`.
"""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from budgets.accounts import Accounts, Refusal
from budgets.events import (
    Event,
    Owner,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.formatting import PROGRAM, one_line
from budgets.ledger import Ledger, LedgerCorruptError, Record, set_aside_command
from budgets.plan import Plan
from budgets.rules import refusal_of
from budgets.state import Batch, Observer, RunState, Try, apply, begin, fold, ticked
from budgets.storage import unused
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.files import (
    CONFIG,
    STARTED,
    SUMMARY,
    Started,
    Unknown,
    Unstarted,
    read,
    recover,
)
from orchestrator.plan.differences import differences, in_short
from orchestrator.records.attempts import attempt_place
from orchestrator.records.planned import knobs_of, space_of
from orchestrator.running.settle import attempt_id, settled
from orchestrator.running.tries import avoided, before, form, judged


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
        for attempt in self.state.open_tries():
            if self._attempt_id(attempt.reserved) == outcome.attempt_id:
                end = settled(attempt.reserved, outcome)
                if end.status is Status.CANCELLED and not may_be_cancelled:
                    end = replace(end, status=Status.LOST)
                return self.record(self._excused(judged(self.state, end)))
        return None

    def _excused(self, own: Settled) -> Settled:
        """A failure on a disk that is full says nothing of its candidate: it is owed again."""
        if own.status is not Status.ERROR or not (why := self.ledger.full_disk()):
            return own
        cause = one_line(f"{why}. Then: {own.cause}")
        return replace(own, status=Status.LOST, again=None, cause=cause)

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
            panel=batch.panel,
            generation=batch.number,
            candidate=candidate,
            seed=seed,
            attempt=len(batch.tries.get((candidate, seed), ())) + 1,
            reserve_ms=0,
            slot=self.state.accounts.free_slot,
        )
        attempt = self.attempt(reserved)
        return replace(reserved, reserve_ms=attempt.limits.reserve_ms), attempt

    def _refusal(self, accounts: Accounts, reserved: Reserved) -> Refusal | None:
        """Why it may not start now: a longer variant may take more than what is left."""
        batch = self.state.batch(reserved)
        refusal = refusal_of(self.state, batch, reserved.candidate, accounts)
        return refusal or accounts.refusal(reserved.reserve_ms, apart=batch.panel is not None)

    def attempt(self, reserved: Reserved) -> Attempt:
        """The attempt a reservation is for: the same one whenever it is asked for."""
        plan, batch = self.state.plan, self.state.batch(reserved)
        earlier = before(batch, reserved)
        made = form(self.state, batch, reserved.candidate)
        return Attempt(
            attempt_id=self._attempt_id(reserved),
            directory=self.directory / "eval" / attempt_place(reserved),
            objective=made.objective,
            knobs=knobs_of(batch, reserved.candidate, space_of(plan)),
            seed=reserved.seed,
            limits=plan.limits.stretched(made.length),
            owner=self.owner,
            pinned=plan.provenance,
            avoid=avoided(earlier),
        )

    def _attempt_id(self, reserved: Reserved | Settled) -> str:
        return attempt_id(self.state, reserved)


def open_run(ledger: Ledger, plan: Plan, owner: Owner, observe: Observer) -> Run:
    """The run of `plan`: a new one, or the one in the ledger if it has the same plan.

    Raises PlanChangedError if the ledger belongs to another plan.
    """
    records = ledger.replay()
    first = next(records, None)
    if first is None:
        _refuse_orphans(ledger.path.parent)
        first = ledger.seal(Planned(plan=plan))
        ledger.append(first)
        return Run(ledger, begin(first), owner, observe)
    state = fold(chain([first], records))
    check_same_plan(ledger.path.parent, state, plan)
    return Run(ledger, state, owner, observe)


def _refuse_orphans(directory: Path) -> None:
    """Raises LedgerCorruptError where evaluations lie whose ledger is gone: they were paid for."""
    evaluations = directory / "eval"
    if evaluations.is_dir() and any(evaluations.iterdir()):
        raise LedgerCorruptError(
            f"{directory} holds evaluations that were paid for, but its ledger is gone or empty. "
            f"Nothing was changed. Put the ledger back from a backup, or begin anew with: "
            f"{set_aside_command(directory)}"
        )


OF_THE_CODE = ("objective.settings.code", "objective_fingerprint:")
"""What an edit of the sources changes of a plan."""


def check_same_plan(directory: Path, recorded: RunState, asked: Plan) -> None:
    """Raises PlanChangedError, saying what differs, unless they describe the same run.

    The run may have been amended since: asked for as it was at first, or as it is now, it is the
    same one.
    """
    changed = differences(recorded.planned, asked)
    if not changed or not differences(recorded.plan, asked):
        return
    ways = ["Repeat the recorded options", "or give the new run its own name with --run-id NAME"]
    if all(name.startswith(OF_THE_CODE) for name in changed):
        ways[0] = "The sources have changed since it was planned: put them back as they were"
    if asked.campaign is not None:
        ways = ["Put the file back as it was", "or give the campaign a [campaign] name of its own"]
    if asked.campaign is not None and asked.parent is not None:  # it was asked for without a file
        ways = [
            "Repeat the recorded options",
            "or give this training its own name with --run-id NAME",
        ]
    if all(name.startswith(("caps.", "resolved.generations")) for name in changed):
        ways = [f"Caps change by: {PROGRAM} amend {directory} ... --reason WHY"]
    raise PlanChangedError(
        f"{directory} holds another plan (recorded -> asked): {in_short(changed)}. "
        f"{', '.join(ways)}."
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
    for abandoned in run.state.open_tries():
        settle_one_abandoned(run, abandoned)


def settle_one_abandoned(run: Run, abandoned: Try) -> None:
    """Settle an attempt that another process began, once nothing of it is alive here."""
    attempt = run.attempt(abandoned.reserved)
    wait_seconds = 2 * attempt.limits.grace_seconds + 5
    found = recover(attempt.directory, attempt.attempt_id, wait_seconds)
    run.record(judged(run.state, _end_of_abandoned(abandoned, found)))


def _end_of_abandoned(abandoned: Try, found: Outcome | Unstarted | Unknown) -> Settled:
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
