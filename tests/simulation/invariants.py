"""What must hold after every record and at the end of a story, whatever happened in it."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from pathlib import Path

from budgets.causes import cause_of
from budgets.events import (
    Event,
    GenerationAsked,
    GenerationTold,
    Late,
    Opened,
    Reserved,
    Settled,
    Status,
)
from budgets.fold import apply, begin, fold
from budgets.ledger.chain import LEDGER, Reader, Record, read
from budgets.state import RunState
from budgets.terms import Window
from objectives.analytic_settings import MOST_HALVINGS
from orchestrator.verification.verify import verify
from tests.simulation import beside
from tests.simulation.clock import SimulatedClock
from tests.simulation.journal import Evaluation, Journal, Use
from tests.simulation.must import must
from tests.simulation.reference import Reference


@dataclass
class Judge:
    """Follows one run record by record, with books of its own."""

    directory: Path
    journal: Journal
    clock: SimulatedClock
    reference: Reference | None = None
    shadow: RunState | None = None  # the file's, folded record by record
    end: int = 0  # of what is folded, in bytes
    heads: dict[int, str] = field(default_factory=dict)  # acknowledged: number of records -> digest
    open: dict[tuple[Evaluation, int], Reserved] = field(default_factory=dict)
    charged: Counter[tuple[Evaluation, int]] = field(default_factory=Counter)
    lost: set[tuple[Evaluation, int]] = field(default_factory=set)
    seen_ms: list[int] = field(default_factory=list)  # by session: how long it was open at least
    promised: dict[tuple[Evaluation, int], tuple[int, int]] = field(default_factory=dict)
    """Of each open attempt its session, and when in it the attempt began."""
    reserved_ms: dict[tuple[Evaluation, int], int] = field(default_factory=dict)
    began_at: float = 0.0
    opened_at: float = 0.0  # when the last session began
    is_unready: bool = False  # since then an evaluation found that nothing can be evaluated
    again: Counter[tuple[Evaluation, str | None]] = field(default_factory=Counter)
    avoided: dict[Evaluation, str] = field(default_factory=dict)  # devices
    final: dict[Evaluation, Settled] = field(default_factory=dict)
    told: dict[int, GenerationTold] = field(default_factory=dict)
    records: Counter[str] = field(default_factory=Counter)

    def observe(self, state: RunState, event: Event) -> None:
        """To be called after each record. Raises InvariantError."""
        if not self.heads:
            self.began_at, self.clock.was_set_back = self.clock.seconds, False
        unheard = self._read_on(state)
        for earlier in unheard[:-1]:
            self._clock_in(earlier)
            self._note(earlier.event)
        self._clock_in(unheard[-1])
        must(unheard[-1].event == event, f"{event.kind} is not the last record of the file")
        self.heads[state.records] = state.head
        self.records[event.kind] += 1
        self._accounts(state)
        match event:
            case Opened():
                self.opened_at, self.is_unready = self.clock.seconds, False
            case GenerationAsked():
                self._asked(event)
            case Reserved():
                self._reserved(state, event)
            case Settled():
                self._settled(event)
                self._really_lost(event)
                self.is_unready |= _is_setup(event) and not event.recovered
            case Late():
                self.charged[_place(event)] += event.charged_ms
            case GenerationTold():
                self._told(event)
            case _:
                pass
        in_flight = [evaluation for evaluation, _ in self.open]
        beside.observe(state, event, in_flight, self.final, self.reference)

    def _accounts(self, state: RunState) -> None:
        accounts = state.accounts
        must(accounts.evaluations_free >= 0, "more evaluations are used than there were")
        used = accounts.device_ms + accounts.reserved_device_ms - accounts.overrun_ms
        must(
            used <= accounts.device_cap_ms, "more device time is used than the cap, and no overrun"
        )
        held = sum(reserved.reserve_ms for reserved in self.open.values())
        if len(self.open) == len(accounts.holds):
            must(held == accounts.reserved_device_ms, "the reservations do not add up")

    def _asked(self, event: GenerationAsked) -> None:
        if self.reference is not None:
            points = self.reference.points[event.generation]
            must(points == event.points, f"generation {event.generation} asks other points")

    def _reserved(self, state: RunState, event: Reserved) -> None:
        place = _place(event)
        must(place not in self.open and place not in self.charged, f"{place} is reserved twice")
        must(place[0] not in self.final, f"{place} is reserved although its result is known")
        must(not self.is_unready, f"{place} is reserved although nothing can be evaluated")
        self.open[place] = event
        self.reserved_ms[place] = event.reserve_ms
        accounts = state.accounts
        if accounts.caps.hours is not None:
            open_ms = self._open_ms(state)
            must(open_ms <= 3_600_000 * accounts.caps.hours + 1, f"{place} may outlast --max-hours")
        if accounts.calendar is not None:
            end = accounts.calendar.now_ms + event.reserve_ms
            must(end <= accounts.calendar.deadline_ms, f"{place} may end after the deadline")
            self._in_time(accounts.caps.window, event)

    def _clock_in(self, record: Record) -> None:
        """Books of wall clock: how long each session was open, and what may end when."""
        event = record.event
        if isinstance(event, Opened):
            self.seen_ms.append(0)
        if self.seen_ms:
            self.seen_ms[-1] = max(self.seen_ms[-1], record.elapsed_ms)
        if isinstance(event, Reserved):
            self.promised[_place(event)] = len(self.seen_ms) - 1, self.seen_ms[-1]
        if isinstance(event, Settled) and _place(event) in self.promised:
            session, began = self.promised.pop(_place(event))
            took_ms = min(event.charged_ms, self.reserved_ms[_place(event)])
            if session < len(self.seen_ms) - 1:
                self.seen_ms[session] = max(self.seen_ms[session], began + took_ms)

    def _open_ms(self, state: RunState) -> int:
        """How long the run may have been open when all that is in flight takes its longest."""
        ends = list(self.seen_ms)
        for place, (session, began) in self.promised.items():
            ends[session] = max(ends[session], began + self.reserved_ms[place])
        led_here = (state.plan.calibration, state.plan.parent)
        return sum(ends) + sum(paid.open_ms for paid in led_here if paid is not None)

    def _in_time(self, window: Window | None, event: Reserved) -> None:
        """The deadline holds in real time too, unless somebody has set the clock back."""
        if window is not None and window.hours is not None and not self.clock.was_set_back:
            end = self.clock.seconds + event.reserve_ms / 1000
            deadline = self.began_at + 3600 * window.hours - window.margin_seconds
            must(end <= deadline + 1e-3, f"{_place(event)} may really end after the deadline")

    def _settled(self, event: Settled) -> None:
        place = _place(event)
        must(self.open.pop(place, None) is not None, f"{place} is settled without a reservation")
        self.charged[place] += event.charged_ms
        is_lost_again = event.cause.startswith("lost ")
        if is_lost_again:
            times = sum(evaluation == place[0] for evaluation, _ in self.lost) + 1
            must(times >= 3, f"{place} is blamed for what was lost {times} times")
            self.reference = None  # another search from here on
        if is_lost_again or not event.status.final:
            self.lost.add(place)
        if event.again is not None:
            self._tried_again(place[0], event)
        if not event.final:
            return
        must(place[0] not in self.final, f"{place[0]} has two results")
        self.final[place[0]] = event
        if self.reference is not None and beside.is_comparable(self.shadow, event, self.reference):
            expected = self.reference.results.get(place[0])
            found = (event.status, event.score)
            must(found == expected, f"{place} ended {found}, undisturbed {expected}")

    def _tried_again(self, evaluation: Evaluation, event: Settled) -> None:
        """Once elsewhere at most, and lighter only what ran out of memory, not for ever."""
        self.again[evaluation, event.again] += 1
        if event.again == "elsewhere":
            self.avoided[evaluation] = event.device
            most = 1
        else:
            must(event.status is Status.OOM, f"{evaluation} is to be lighter, and had memory")
            most = MOST_HALVINGS
        count = self.again[evaluation, event.again]
        must(count <= most, f"{evaluation} is tried again {event.again} for the {count}. time")

    def _really_lost(self, event: Settled) -> None:
        """No attempt is given up while its result is there to be read.

        But for an error on a full disk, of a device or of the setup, which is nobody's result: it
        is owed again.
        """
        cause = cause_of(event.status, event.cause)
        excused = "disk is full" in event.cause or (cause is not None and cause.device_failed)
        excused = excused or _is_setup(event)
        for use in self.journal.of(*_place(event)):
            there = use.status is not None and use.status.final
            there = there and not (excused and use.status is Status.ERROR)
            must(event.status.final or not there, f"{use} is given up although its result is there")

    def _told(self, event: GenerationTold) -> None:
        must(event.generation not in self.told, f"generation {event.generation} is told twice")
        self.told[event.generation] = event
        if self.reference is not None:
            expected = self.reference.told[event.generation]
            must(event == expected, f"generation {event.generation} is told something else")

    def started(self, use: Use) -> None:
        """To be called when an attempt gets its device. Raises InvariantError."""
        must(use.evaluation not in self.final, f"{use.evaluation} is paid for twice")
        uses = self.journal.of(use.evaluation, use.attempt)
        must(len(uses) == 1, f"{use.evaluation}, attempt {use.attempt}, is started twice")
        must((use.evaluation, use.attempt) in self.open, f"{use} is not reserved")
        if use.device == self.avoided.get(use.evaluation):
            others = {u.device for place in self.open for u in self.journal.of(*place)}
            must(others <= {use.device}, f"{use} is tried where it failed, others run elsewhere")

    def _read_on(self, state: RunState) -> list[Record]:
        """The records that are in the file since it was last read; they lead to `state`."""
        path, found = self.directory / LEDGER, []
        with path.open("rb") as file:
            file.seek(self.end)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            must(line.endswith(b"\n"), "the file ends in the middle of a record")
            count, head = (
                (0, "") if self.shadow is None else (self.shadow.records, self.shadow.head)
            )
            record = Reader(path, b"").check(line[:-1], count, self.end, head)
            if self.shadow is None:
                self.shadow = begin(record)
            else:
                apply(self.shadow, record)
            self.end = record.end
            found.append(record)
        must(self.shadow == state, "the file folds to another state than the one in memory")
        return found

    def _note(self, event: Event) -> None:
        match event:
            case Reserved():
                self.open[_place(event)] = event
                self.reserved_ms[_place(event)] = event.reserve_ms
            case Settled():
                self._settled(event)
            case Late():
                self.charged[_place(event)] += event.charged_ms
            case GenerationTold():
                self.told[event.generation] = event
            case _:
                pass

    def reopens(self) -> None:
        """To be called when the run is found again after a death. Raises InvariantError."""
        path = self.directory / LEDGER
        records = read(path).records if path.exists() else ()
        for count, head in self.heads.items():
            must(count <= len(records), f"acknowledged record {count - 1} is gone")
            must(records[count - 1].digest == head, f"record {count - 1} is another one now")

    def closes(self, state: RunState) -> None:
        """To be called when a session has ended by itself. Raises InvariantError."""
        records = read(self.directory / LEDGER).records
        must(fold(records) == state, "the file folds to another state than the one in memory")
        must(not self.open or bool(state.accounts.holds), "reservations are open that nobody holds")

    def ends(self, state: RunState) -> None:
        """To be called at the end of the story. Raises InvariantError."""
        found = verify(self.directory)
        must(found.divergence is None, f"verify: {found.divergence}")
        self._one_at_a_time()
        for use in self.journal.uses:
            self._paid(use)
        if state.concluded is not None:
            must(not self.open, "the run is concluded with open reservations")
            wanted = state.plan.resolved.evaluations
            count = sum(panel is None for panel, *_ in self.final)
            is_early = state.finished < state.plan.resolved.generations  # a cap ended the search
            must(count == wanted or is_early, f"{count} of {wanted} results are there")
            beside.ends(state, self.final, self.reference)

    def _paid(self, use: Use) -> None:
        """What a device did for an attempt is charged, but for what nobody could know.

        That is what an attempt took that was given up, with all that was reserved for it, and left
        no word before the last session began.
        """
        place = (use.evaluation, use.attempt)
        if place in self.open or use.ended is None:
            return
        took_ms = ceil(1000 * (use.ended - use.began) - 1e-6)
        must(place in self.charged, f"{use} is nowhere in the ledger")
        is_final = self.final.get(use.evaluation) is not None
        unheard = use.status is None or use.seen_at > self.opened_at or is_final
        if unheard and place in self.lost:
            took_ms = min(took_ms, self.reserved_ms[place])
        must(
            self.charged[place] >= took_ms,
            f"{use} took {took_ms} ms, {self.charged[place]} ms are charged",
        )

    def _one_at_a_time(self) -> None:
        for device in {use.device for use in self.journal.uses}:
            uses = [use for use in self.journal.uses if use.device == device]
            for one, following in pairwise(uses):
                must(
                    one.ended is not None and one.ended <= following.began + 1e-9,
                    f"{following} begins on a device that {one} still uses",
                )


def _is_setup(event: Settled) -> bool:
    return event.status is Status.LOST and "SetupError" in event.cause


def _place(event: Reserved | Settled | Late) -> tuple[Evaluation, int]:
    return event.key, event.attempt
