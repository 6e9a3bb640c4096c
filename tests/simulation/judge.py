"""The invariants that must hold after every record and at the end of a run.

The judge reads the ledger's file record by record and keeps independent accounts: hours, device
time, evaluations, reservations and results. The product's figures must agree with them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import ceil, inf
from pathlib import Path

from budgets.events import (
    Asked,
    Decided,
    Event,
    Fired,
    GenerationTold,
    Opened,
    Reserved,
    Settled,
    Status,
)
from budgets.failure_causes import cause_of
from budgets.ledger import LEDGER, Record, parse_record, read
from budgets.plan import ComparisonName, Plan
from budgets.schedule import expected, left_to_compare
from budgets.state import Batch, RunState, apply, fold
from orchestrator.verify import verify
from tests.simulation.devices import Evaluation, Machines, Use

MS_PER_HOUR = 3_600_000

Place = tuple[Evaluation, int]
"""An evaluation, and the number of an attempt."""


class InvariantError(AssertionError):
    """An invariant is broken; the message says which."""


def must(holds: bool, what: str) -> None:
    """Raise InvariantError unless it holds."""
    if not holds:
        raise InvariantError(what)


@dataclass(frozen=True)
class Reservation:
    """The worst case of an attempt, its session, and its start in that session."""

    reserve_ms: int
    session: int
    since_ms: int


@dataclass
class Books:
    """What a run has spent and reserved, from its records alone."""

    spent_ms: int = 0  # of device time
    overrun_ms: int = 0  # of that, beyond what was reserved
    before_ms: int = 0  # wall clock of the calibration
    sessions_ms: list[int] = field(default_factory=list)  # how long each was open, at least
    began_ms: float = 0.0  # by the wall clock
    now_ms: float = 0.0  # the latest moment that any clock has shown
    session_began_ms: float = 0.0
    reserved: dict[Place, Reservation] = field(default_factory=dict)  # all, also settled ones
    open: dict[Place, Reservation] = field(default_factory=dict)
    charged: Counter[Place] = field(default_factory=Counter)

    def begin(self, plan: Plan, at_ms: float) -> None:
        """The run is planned."""
        self.before_ms = plan.calibration.open_ms if plan.calibration else 0
        self.spent_ms = plan.calibration.charged_ms if plan.calibration else 0
        self.began_ms = at_ms - (plan.calibration.open_ms if plan.calibration else 0)

    def add(self, record: Record) -> None:
        """Add a record."""
        event, at_ms = record.event, 1000 * datetime.fromisoformat(record.at).timestamp()
        if isinstance(event, Opened):
            self.sessions_ms.append(0)
            self.session_began_ms = max(self.now_ms, at_ms)
        if self.sessions_ms:
            self.sessions_ms[-1] = max(self.sessions_ms[-1], record.elapsed_ms)
        self.now_ms = max(self.now_ms, at_ms, self.session_began_ms + record.elapsed_ms)
        match event:
            case Reserved():
                session = len(self.sessions_ms) - 1
                own = Reservation(event.reserve_ms, session, self.sessions_ms[-1])
                self.open[place_of(event)] = self.reserved[place_of(event)] = own
            case Settled():
                self._settle(event)

    def _settle(self, event: Settled) -> None:
        own = self.open.pop(place_of(event), None)
        must(own is not None, f"{place_of(event)} is settled without a reservation")
        assert own is not None
        self.charged[place_of(event)] += event.charged_ms
        self.spent_ms += event.charged_ms
        self.overrun_ms += max(0, event.charged_ms - own.reserve_ms)
        if own.session < len(self.sessions_ms) - 1:  # so its session was open at least until then
            end = own.since_ms + min(event.charged_ms, own.reserve_ms)
            self.sessions_ms[own.session] = max(self.sessions_ms[own.session], end)

    @property
    def held_ms(self) -> int:
        return sum(own.reserve_ms for own in self.open.values())

    @property
    def wall_ms(self) -> int:
        """How long the run was open in total."""
        return self.before_ms + sum(self.sessions_ms)

    @property
    def longest_wall_ms(self) -> int:
        """The same if all running attempts take their worst case."""
        ends = list(self.sessions_ms)
        for own in self.open.values():
            ends[own.session] = max(ends[own.session], own.since_ms + own.reserve_ms)
        return self.before_ms + sum(ends)

    def deadline_ms(self, plan: Plan) -> float:
        """The deadline in wall-clock time; infinite without a window."""
        window = plan.caps.window
        if window is None or window.hours is None:
            return inf
        return self.began_ms + MS_PER_HOUR * window.hours - 1000 * window.margin_seconds

    def check_caps(self, plan: Plan, aside_hours: tuple[float, float]) -> None:
        """Check every cap; call it after each reservation.

        `aside_hours`: device-hours and hours that the attempt must leave for the verdict.
        """
        caps, (aside_ms, aside_wall_ms) = plan.caps, (MS_PER_HOUR * own for own in aside_hours)
        hours = [caps.device_hours]
        if caps.cost is not None:
            hours.append(caps.cost / plan.price_per_device_hour)
        cap_ms = min((MS_PER_HOUR * cap for cap in hours if cap is not None), default=inf)
        used_ms = self.spent_ms + self.held_ms + aside_ms
        used_ms -= 0 if aside_ms else self.overrun_ms
        must(
            used_ms <= cap_ms + 1e-3,
            "more device time than the cap allows, or than the search's share",
        )
        if caps.hours is not None:
            over_ms = self.longest_wall_ms + aside_wall_ms - MS_PER_HOUR * caps.hours
            must(over_ms <= 1, "running attempts may outlast --max-hours, or the search's share")
        *_, last = self.open.values()
        end_ms = self.now_ms + last.reserve_ms + aside_wall_ms
        must(end_ms <= self.deadline_ms(plan) + 1, "it may end after the deadline")

    def check_agreement(self, state: RunState) -> None:
        """Check that the product's accounts are equal to these."""
        accounts = state.accounts
        must(accounts.device_ms == self.spent_ms, "the product has another device time")
        must(accounts.reserved_ms == self.held_ms, "the reservations do not add up")
        must(accounts.wall_ms == self.wall_ms, "the product has other hours")


@dataclass
class Judge:
    """Follows one run record by record.

    `reference` is the same search without disturbances.
    """

    directory: Path
    machines: Machines
    reference: RunState | None = None
    shadow: RunState | None = None  # folded from the file, record by record
    end: int = 0  # bytes of the file that are folded
    heads: dict[int, str] = field(default_factory=dict)  # number of acknowledged records -> digest
    books: Books = field(default_factory=Books)
    lost: set[Place] = field(default_factory=set)
    retried: set[Evaluation] = field(
        default_factory=set
    )  # that failed, perhaps because of a machine
    final: dict[Evaluation, Settled] = field(default_factory=dict)
    began_at: float = 0.0
    losses: Counter[Evaluation] = field(default_factory=Counter)  # of this session's attempts
    is_unready: bool = False  # an evaluation of this session found that none can run

    def __post_init__(self) -> None:
        self.results = {} if self.reference is None else results_of(self.reference)

    def observe(self, state: RunState, event: Event) -> None:
        """Check a new record; call it after each. Raises InvariantError."""
        if not self.heads:
            self.began_at, self.machines.clock.was_set_back = self.machines.clock.seconds, False
        last = None
        for record in self._unread():
            last = record.event
            self._judge(last)
        must(last == event, f"{event.kind} is not the last record of the file")
        must(self.shadow == state, "the file folds to another state than the one in memory")
        self.heads[state.records] = state.head
        self.books.check_agreement(state)
        if isinstance(event, Reserved):
            self._check_real_deadline(event)
        elif isinstance(event, Settled):
            self._check_lost(event)

    def _unread(self) -> Iterator[Record]:
        """Yield the new records of the file, each after applying it and adding it to the books."""
        path = self.directory / LEDGER
        with path.open("rb") as file:
            file.seek(self.end)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            must(line.endswith(b"\n"), "the file ends in the middle of a record")
            shadow = self.shadow
            count, head = (0, "") if shadow is None else (shadow.records, shadow.head)
            record = parse_record(path, line[:-1], count, self.end, head)
            self.shadow = apply(shadow, record)
            if shadow is None:
                at_ms = 1000 * datetime.fromisoformat(record.at).timestamp()
                self.books.begin(self.shadow.plan, at_ms)
            self._check_before(record.event)
            self.books.add(record)
            self.end = record.end
            yield record

    @property
    def state(self) -> RunState:
        assert self.shadow is not None, "a record was read"
        return self.shadow

    def _check_before(self, event: Event) -> None:
        """Check the state before the record."""
        if isinstance(event, Reserved):
            place = place_of(event)
            must(place not in self.books.reserved, f"{place} is reserved twice")
            must(place[0] not in self.final, f"{place} is reserved although its result is known")
            must(not self.is_unready, f"{place} is reserved although nothing can be evaluated")

    def _judge(self, event: Event) -> None:
        match event:
            case Opened():
                self.is_unready = False
                self.losses.clear()
            case Asked():
                self._check_seeds()
                if event.comparison is not None:
                    self._check_comparison(self.state.comparisons[event.comparison])
                elif self.reference is not None:
                    own = self.reference.generations[event.generation].configurations
                    must(own == event.configurations, f"generation {event.generation}: others")
            case Reserved():
                self.books.check_caps(self.state.plan, self._set_aside(event))
                self._check_counts()
            case Settled():
                self._settled(event)
                self._check_counts()
            case GenerationTold():
                if self.reference is not None:
                    expected_told = self.reference.generations[event.generation].told
                    must(event == expected_told, f"generation {event.generation}: told otherwise")
            case Fired(rule="setup_failed"):
                must(self.is_unready, "a session is paused by what an earlier one found")
            case Fired(rule="infrastructure"):
                most = max(self.losses.values(), default=0)
                must(most >= 3, f"it pauses for what this session lost {most} times")
            case Fired() if event.decision == "stop":
                must(not self.books.open, f"{event.rule} stops the run while attempts are running")
            case Decided():
                must(not self.books.open, "it is decided while attempts are running")
                self._check_decision()

    def _set_aside(self, event: Reserved) -> tuple[float, float]:
        """Device-hours and hours for the comparisons, with a last attempt at its worst."""
        plan, works = self.state.plan, left_to_compare(self.state)
        if event.comparison is not None or not works or plan.calibration is None:
            return 0.0, 0.0
        device_hours, hours = expected(works, plan.calibration, plan.devices.count)
        last = plan.limits.reserve_ms / MS_PER_HOUR
        return device_hours + last, hours + last

    def _check_real_deadline(self, event: Reserved) -> None:
        """The deadline holds in real time too, unless the clock was set back."""
        window, clock = self.state.plan.caps.window, self.machines.clock
        if window is not None and window.hours is not None and not clock.was_set_back:
            end = clock.seconds + event.reserve_ms / 1000
            deadline = self.began_at + 3600 * window.hours - window.margin_seconds
            must(end <= deadline + 1e-3, f"{place_of(event)} may really end after the deadline")

    def _check_counts(self) -> None:
        """Check the number of evaluations of the search, and of those beside it."""
        plan, accounts = self.state.plan, self.state.accounts
        final, running = _count(self.final), _count(place[0] for place in self.books.open)
        must(final == (accounts.evaluations, accounts.comparisons), "the evaluations do not add up")
        must(final[0] + running[0] <= plan.resolved.evaluations, "more evaluations than E")
        must(
            final[1] + running[1] <= plan.comparison_evaluations,
            "more evaluations beside the search than planned",
        )

    def _settled(self, event: Settled) -> None:
        evaluation, _ = place = place_of(event)
        self.is_unready |= _is_setup(event) and not event.recovered
        is_blamed = event.cause.startswith("lost ")
        if is_blamed:
            times = sum(own == evaluation for own, _ in self.lost) + 1
            must(times >= 3, f"{place} is blamed for what was lost {times} times")
            self.reference = None  # another search from here on
        if is_blamed or not event.status.final:
            self.lost.add(place)
        is_of_now = self.books.reserved[place].session == len(self.books.sessions_ms) - 1
        self.losses[evaluation] += event.status is Status.LOST and is_of_now
        if event.retry:
            must(evaluation not in self.retried, f"{evaluation} is retried again")
            self.retried.add(evaluation)
        if not event.final:
            return
        must(evaluation not in self.final, f"{evaluation} has two results")
        self.final[evaluation] = event
        if self.reference is not None and self._is_comparable(event.comparison):
            found, expected = (event.status, event.score), self.results.get(evaluation)
            must(found == expected, f"{place} ended {found}, undisturbed {expected}")

    def _check_lost(self, event: Settled) -> None:
        """Check that no attempt is settled as lost if its result can be read.

        Errors of a full disk, a device or the setup are not results.
        """
        cause = cause_of(event.status, event.cause)
        excused = "disk is full" in event.cause or (cause is not None and cause.device_failed)
        excused = excused or _is_setup(event)
        for use in self.machines.uses_of(*place_of(event)):
            there = use.status is not None and use.status.final
            there = there and not (excused and use.status is Status.ERROR)
            must(event.status.final or not there, f"{use} is lost although its result is there")

    def started(self, use: Use) -> None:
        """Check an attempt that gets its device. Raises InvariantError."""
        place = use.evaluation, use.attempt
        must(use.evaluation not in self.final, f"{use.evaluation} is paid for twice")
        must(len(self.machines.uses_of(*place)) == 1, f"{place} is started twice")
        must(place in self.books.open, f"{use} is not reserved")

    def refuses(self) -> None:
        """Check the file after a record could not be synced: that record is not there."""
        must((self.directory / LEDGER).stat().st_size == self.end, "an unsynced record stays")

    def reopens(self) -> None:
        """Check the file after a death: every acknowledged record is there."""
        path = self.directory / LEDGER
        records = read(path) if path.exists() else ()
        for count, head in self.heads.items():
            must(count <= len(records), f"acknowledged record {count - 1} is gone")
            must(records[count - 1].digest == head, f"record {count - 1} is another one now")

    def closes(self, state: RunState) -> None:
        """Check the file after a session that ended normally."""
        records = read(self.directory / LEDGER)
        must(fold(records) == state, "the file folds to another state than the one in memory")

    def stops(self, state: RunState) -> None:
        """Check a run that a cap has stopped: its finalists were compared.

        Except after an overrun, which may have used the comparison's share.
        """
        is_comparable = state.plan.confirmation is not None and bool(state.completed)
        is_compared = state.comparisons.get("finalists") is not None or bool(self.books.overrun_ms)
        must(is_compared or not is_comparable, "it is stopped before its finalists were compared")

    def ends(self, state: RunState) -> None:
        """Check the whole run at its end. Raises InvariantError."""
        found = verify(self.directory)
        must(found.divergence is None, f"verify: {found.divergence}")
        for device in {use.device for use in self.machines.uses}:
            uses = [use for use in self.machines.uses if use.device == device]
            for one, following in pairwise(uses):
                is_free = one.ended is not None and one.ended <= following.began + 1e-9
                must(is_free, f"{following} begins on a device that {one} still uses")
        for use in self.machines.uses:
            self._check_paid(use)
        if state.concluded is not None:
            self._check_conclusion(state)

    def _check_paid(self, use: Use) -> None:
        """Check that the time on a device is charged, for a lost attempt up to its reservation."""
        place = use.evaluation, use.attempt
        if place in self.books.open or use.ended is None:
            return
        must(place in self.books.charged, f"{use} is nowhere in the ledger")
        took_ms = ceil(1000 * (use.ended - use.began) - 1e-6)
        if place in self.lost:
            took_ms = min(took_ms, self.books.reserved[place].reserve_ms)
        charged = self.books.charged[place]
        must(charged >= took_ms, f"{use} took {took_ms} ms, {charged} ms are charged")

    def _check_conclusion(self, state: RunState) -> None:
        must(not self.books.open, "the run is concluded with open reservations")
        count, _ = _count(self.final)
        wanted = state.plan.resolved.evaluations
        is_early = state.finished < state.plan.resolved.generations  # a cap ended the search
        must(count == wanted or is_early, f"{count} of {wanted} results are there")
        for comparison in state.comparisons.values():
            self._check_comparison(comparison)
        if state.plan.confirmation is not None:
            must(state.decided is not None, "the run is concluded without a verdict")
            self._check_decision()
        beside = {
            (name, 0, *key)
            for name, comparison in state.comparisons.items()
            for key in comparison.evaluations()
        }
        found = {evaluation for evaluation in self.final if evaluation[0] is not None}
        must(found == beside, f"{len(found)} of {len(beside)} results beside the search are there")

    def _check_seeds(self) -> None:
        """Check that comparisons use fresh seeds, and the winner none of the finalists'."""
        state = self.state
        searched = {seed for generation in state.generations for seed in generation.seeds[0]}
        seeds = {name: {s for own in p.seeds for s in own} for name, p in state.comparisons.items()}
        for name, own in seeds.items():
            must(not own & searched, f"the comparison {name} has a seed of the search's")
        picked = seeds.get("finalists", set()) & seeds.get("winner", set())
        must(not picked, "the winner is compared on seeds that it was selected on")

    def _is_comparable(self, comparison: ComparisonName | None) -> bool:
        """Whether the reference has the same comparison: no cap ended the search early."""
        assert self.reference is not None
        whole = len(self.state.completed) == len(self.reference.completed)
        return comparison in (None, "reference") or whole

    def _check_comparison(self, comparison: Batch) -> None:
        name = comparison.comparison
        if self.reference is not None and name is not None and self._is_comparable(name):
            expected = self.reference.comparisons[name]
            same = comparison.configurations == expected.configurations
            must(same, f"the comparison {name} has other configurations")
            must(comparison.seeds == expected.seeds, f"the comparison {name} has other seeds")

    def _check_decision(self) -> None:
        state, reference = self.state, self.reference
        for comparison in state.comparisons.values():
            must(
                comparison.closed,
                f"the comparison {comparison.comparison} is open, although the run is decided",
            )
        if reference is None or not self._is_comparable("winner"):
            return
        own, other = state.decided, reference.decided
        skipped = (
            reference.comparisons.get("long_run") is not None
            and state.comparisons.get("long_run") is None
        )
        if own is not None and other is not None and skipped:  # a cap did not allow the long run
            must(own.grade == "go", f"{own.grade} without the long run that {other.grade} had")
            must((own.gain, own.lower) == (other.gain, other.lower), f"a gain of {own.gain}")
        else:
            must(own == other, f"{own} instead of {other}")


def place_of(event: Reserved | Settled) -> Place:
    """Return the record's attempt."""
    return (event.comparison, event.generation, event.candidate, event.seed), event.attempt


def results_of(state: RunState) -> dict[Evaluation, tuple[Status, float | None]]:
    """Return every final result of a run."""
    return {
        (batch.comparison, batch.number, result.candidate, result.seed): (
            result.status,
            result.score,
        )
        for batch in state.batches()
        for result in batch.results()
    }


def _count(evaluations: Iterable[Evaluation]) -> tuple[int, int]:
    """Return the number of evaluations of the search, and of those beside it."""
    found = Counter(comparison is None for comparison, *_ in evaluations)
    return found[True], found[False]


def _is_setup(event: Settled) -> bool:
    return event.status is Status.LOST and "SetupError" in event.cause
