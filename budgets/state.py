"""What a run is, as its ledger tells it: `state = fold(records)`, and nothing derived is stored.

`apply` refuses events that cannot follow what came before, so folding a ledger also proves that it
tells one consistent story: every reservation settled once, no cap passed, no generation told twice.
It alone changes a state, in place, and checks everything before it changes anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from math import inf, nextafter
from typing import Any, NamedTuple, assert_never

from budgets.accounts import MS_PER_HOUR, Accounts, Calendar
from budgets.events import (
    Amended,
    Concluded,
    Decided,
    Event,
    Fired,
    GenerationAsked,
    GenerationTold,
    Opened,
    Overridden,
    PanelAsked,
    Planned,
    Reserved,
    Settled,
    Status,
    Withdrawn,
)
from budgets.failures import is_setup
from budgets.formatting import counted
from budgets.ledger import Record
from budgets.plan import Arm, Condition, PanelName, Plan, ProxyTerms, Window
from budgets.stats import total


class Moment(NamedTuple):
    """When a record was made."""

    session: int
    ms: int  # since that session opened


class Try(NamedTuple):
    """One attempt at an evaluation: open until it is settled."""

    session: int
    reserved: Reserved
    settled: Settled | None = None
    reserved_ms: int = 0  # since its session opened
    settled_at: Moment | None = None


def _final(tries: tuple[Try, ...]) -> Settled | None:
    """Of the tries at one evaluation; after it there is no other one."""
    last = tries[-1].settled
    return last if last is not None and last.final else None


def _count(tries: Mapping[tuple[int, int], tuple[Try, ...]]) -> int:
    """How many evaluations have their final result."""
    return sum(_final(own) is not None for own in tries.values())


@dataclass(slots=True)
class Batch(ABC):
    """Configurations to evaluate, and what has come of them. Keys are (candidate, seed)."""

    number: int
    points: tuple[tuple[float, ...], ...]
    tries: dict[tuple[int, int], tuple[Try, ...]] = field(default_factory=dict)
    asked_at: Moment | None = None

    @property
    def panel(self) -> PanelName | None:
        """None: a generation of the search."""
        return None

    @abstractmethod
    def seeds_of(self, candidate: int) -> tuple[int, ...]:
        """Those the candidate is evaluated on."""

    @abstractmethod
    def settings(self, candidate: int) -> Mapping[str, Any]:
        """What the candidate changes of the objective's settings."""

    @abstractmethod
    def length(self, candidate: int) -> float:
        """How long its evaluation is expected to take, relative to one of the search's."""

    def evaluations(self) -> Iterator[tuple[int, int]]:
        """Every evaluation of the batch, in candidate order."""
        return ((c, seed) for c in range(len(self.points)) for seed in self.seeds_of(c))

    def result(self, candidate: int, seed: int) -> Settled | None:
        """How the evaluation ended for good; None while it is owed."""
        tries = self.tries.get((candidate, seed))
        return None if tries is None else _final(tries)  # after which there is no other try

    def owed(self) -> list[tuple[int, int]]:
        """Evaluations without a final result and not in flight, in candidate order."""
        return [
            key for key in self.evaluations() if self.result(*key) is None and not self._flying(key)
        ]

    def _flying(self, key: tuple[int, int]) -> bool:
        tries = self.tries.get(key, ())
        return bool(tries) and tries[-1].settled is None

    def open_tries(self) -> list[Try]:
        """Attempts in flight; after a crash, those that nobody settled."""
        return [t for tries in self.tries.values() for t in tries if t.settled is None]

    def results(self) -> list[Settled]:
        """Final results so far, in candidate order."""
        return [r for key in self.evaluations() if (r := self.result(*key)) is not None]

    def ends(self) -> Iterator[Settled]:
        """Every attempt that is over, final or not, in candidate order."""
        ends = (t.settled for key in self.evaluations() for t in self.tries.get(key, ()))
        return (end for end in ends if end is not None)

    @property
    def settled(self) -> int:
        """How many evaluations have their final result."""
        return _count(self.tries)

    @property
    def closed(self) -> bool:
        """Whether every evaluation has its final result."""
        return all(self.result(*key) is not None for key in self.evaluations())

    @property
    def failed(self) -> list[Settled]:
        return [r for r in self.results() if r.status is not Status.OK]

    def scores_by_seed(self, candidate: int) -> dict[int, float]:
        """The candidate's healthy scores so far."""
        results = ((seed, self.result(candidate, seed)) for seed in self.seeds_of(candidate))
        return {s: r.score for s, r in results if r is not None and r.score is not None}

    def score(self, candidate: int) -> float | None:
        """Mean score over the seeds; None unless every one of them is healthy."""
        healthy = self.scores_by_seed(candidate)
        whole = len(healthy) == len(self.seeds_of(candidate))
        return total(healthy.values()) / len(healthy) if whole else None

    def scores(self) -> list[float | None]:
        """One entry a candidate, in candidate order."""
        return [self.score(candidate) for candidate in range(len(self.points))]

    @property
    def healthy(self) -> list[float]:
        """The scores of candidates that have one, in candidate order."""
        return [score for score in self.scores() if score is not None]


@dataclass(slots=True, kw_only=True)
class Generation(Batch):
    """Points that the search proposed, or that a calibration, a check or a campaign consists of."""

    seeds: tuple[int, ...]  # shared by all candidates
    distances: tuple[float, ...] = ()
    conditions: tuple[Condition, ...] = ()  # of a campaign: what each candidate is
    told: GenerationTold | None = None
    told_at: Moment | None = None

    @property
    def settled(self) -> int:
        """How many evaluations have their final result: all of them, once it is told."""
        return _count(self.tries) if self.told is None else len(self.points) * len(self.seeds)

    def seeds_of(self, candidate: int) -> tuple[int, ...]:  # noqa: ARG002
        return self.seeds

    def settings(self, candidate: int) -> Mapping[str, Any]:
        return self.conditions[candidate].settings if self.conditions else {}

    def length(self, candidate: int) -> float:
        return self.conditions[candidate].length if self.conditions else 1.0

    def fitness(self) -> list[float]:
        """What the search is told, in candidate order."""
        return fitness(self.scores())


def fitness(scores: Sequence[float | None]) -> list[float]:
    """Scores, with the failed finite and worse than every healthy one.

    The failed follow the worst healthy score in candidate order, each by the least step there is:
    only ranks matter to the search. Where none is healthy, theirs is the candidate order.
    """
    worst = max((s for s in scores if s is not None), default=0.0)
    told = []
    for score in scores:
        if score is None:
            worst = nextafter(worst, inf)
        told.append(worst if score is None else score)
    return told


@dataclass(slots=True, kw_only=True)
class Panel(Batch):
    """Configurations compared on the same seeds, beside the search. A candidate is an arm."""

    name: PanelName
    arms: tuple[Arm, ...]
    seeds: tuple[tuple[int, ...], ...]  # of each arm

    @property
    def panel(self) -> PanelName | None:
        return self.name

    def seeds_of(self, candidate: int) -> tuple[int, ...]:
        return self.seeds[candidate]

    def settings(self, candidate: int) -> Mapping[str, Any]:
        return self.arms[candidate].settings

    def length(self, candidate: int) -> float:
        return self.arms[candidate].length


@dataclass(slots=True)
class RunState:
    """A run as its ledger tells it."""

    planned: Plan  # as it was agreed
    plan: Plan  # as it is now: its caps may have been amended
    genesis: str  # digest of the first record: names the run
    began_ms: int  # milliseconds since 1970: a window of hours begins then
    head: str
    records: int
    accounts: Accounts
    opened: list[Opened] = field(default_factory=list)
    opened_ms: list[int] = field(default_factory=list)  # of each session: when, since 1970
    told: list[Generation] = field(default_factory=list)
    current: Generation | None = None  # asked but not told yet
    panels: dict[tuple[PanelName, int], Panel] = field(default_factory=dict)
    ended: Fired | None = None  # the rule that stopped the search, unless caps changed since
    decided: Decided | None = None
    fired: list[Fired] = field(default_factory=list)
    overridden: list[Overridden] = field(default_factory=list)
    amended: list[Amended] = field(default_factory=list)
    withdrawn: list[Withdrawn] = field(default_factory=list)
    wall_offset_ms: int = 0  # of the wall's clock against the session's own, when last compared
    clock_jumps_ms: list[int] = field(default_factory=list)
    starts_ms: dict[int, int] = field(default_factory=dict)  # by session: to its first attempt
    setup_failed: Settled | None = None  # the session's first to say nothing can be evaluated
    concluded: Concluded | None = None

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Every one that was asked, in order."""
        return tuple(self.told) if self.current is None else (*self.told, self.current)

    def generation(self, number: int) -> Generation:
        """The one with that number, which was asked."""
        if number < len(self.told):
            return self.told[number]
        assert self.current is not None, f"generation {number} was never asked"
        return self.current

    def panel(self, name: PanelName, number: int = 0) -> Panel | None:
        """The panel of that name and number, if it was asked."""
        return self.panels.get((name, number))

    def batch(self, place: Reserved | Settled) -> Batch:
        """The generation or panel that an evaluation belongs to, which was asked."""
        if place.panel is None:
            return self.generation(place.generation)
        return self.panels[place.panel, place.generation]

    def batches(self) -> Iterator[Batch]:
        """Every generation, then every panel, in the order in which they were asked."""
        return chain(self.generations, self.panels.values())

    def ends(self) -> Iterator[Settled]:
        """Every attempt that is over, batch by batch."""
        return chain.from_iterable(batch.ends() for batch in self.batches())

    @property
    def own_sessions_ms(self) -> tuple[int, ...]:
        """How long each session was open: the run's own, not those that led to it."""
        sessions = self.accounts.sessions_ms
        return sessions[len(sessions) - len(self.opened) :]

    @property
    def asked(self) -> int:
        """How many generations were asked."""
        return len(self.told) + (self.current is not None)

    @property
    def latest(self) -> Generation | None:
        """The last one that was asked."""
        return self.current or (self.told[-1] if self.told else None)

    def open_tries(self) -> list[Try]:
        """Attempts in flight; after a crash, those that nobody settled."""
        batches = [*self.panels.values(), *filter(None, (self.current,))]
        return [attempt for batch in batches for attempt in batch.open_tries()]

    @property
    def finished(self) -> int:
        """Generations that are over: told to the search, or evaluated when there is none."""
        if self.plan.search is not None or self.current is None:
            return len(self.told)
        return len(self.told) + self.current.closed


Observer = Callable[[RunState, Event], None]
"""Told of each record and of the state that it led to."""

CLOCK_JUMP_MS = 5000
"""What two clocks may drift apart within a generation without anybody being told."""


class ImpossibleEventError(Exception):
    """An event that cannot follow the records before it."""

    def __init__(self, record: Record, why: str) -> None:
        place = f"record {record.seq} at byte {record.offset}"
        super().__init__(f"{place} ({record.event.kind}) cannot follow what precedes it: {why}")
        self.record = record
        self.why = why


def begin(record: Record) -> RunState:
    """The state after a ledger's first record."""
    if not isinstance(record.event, Planned):
        raise ImpossibleEventError(record, "a ledger begins with its plan")
    plan = record.event.plan
    try:
        began_ms = _ms(record.at)
    except ValueError as error:
        raise ImpossibleEventError(record, str(error)) from error
    if plan.calibration is not None:  # made for this very run, its time is the run's
        began_ms -= plan.calibration.open_ms
    accounts = Accounts(
        plan.caps,
        plan.price_per_device_hour,
        apart_cap=plan.apart,
        calendar=_calendar(plan.caps.window, began_ms, began_ms),
    )
    for paid in (plan.calibration, plan.parent):  # what led to the run is part of its price
        if paid is not None:
            sessions_ms = (*accounts.sessions_ms, *filter(None, (paid.open_ms,)))
            accounts = accounts._replace(device_ms=plan.paid_before_ms, sessions_ms=sessions_ms)
    return RunState(plan, plan, record.digest, began_ms, record.digest, 1, accounts)


def _ms(at: str) -> int:
    return round(1000 * datetime.fromisoformat(at).timestamp())


def _calendar(window: Window | None, began_ms: int, now_ms: int) -> Calendar | None:
    """The deadline that a window of a run planned at `began_ms` means."""
    if window is None:
        return None
    if window.until is not None:
        end_ms = 1000 * window.until.timestamp()
    else:
        end_ms = began_ms + (window.hours or 0.0) * MS_PER_HOUR
    return Calendar(end_ms - 1000 * window.margin_seconds, now_ms, now_ms)


def fold(records: Iterable[Record]) -> RunState:
    """The state after all of `records`. Raises ImpossibleEventError, naming the first bad one.

    Raises ValueError when there is none.
    """
    iterator = iter(records)
    first = next(iterator, None)
    if first is None:
        raise ValueError("the ledger holds no whole record yet: begin the run with its own command")
    state = begin(first)
    for record in iterator:
        apply(state, record)
    return state


def apply(state: RunState, record: Record) -> None:
    """Advance `state` by one record. Raises ImpossibleEventError and leaves it as it was."""
    before, event = state.accounts, record.event
    try:
        if before.calendar is not None:
            state.accounts = _on_the_calendar(before, record)
        _apply(state, event, record)
    except ValueError as error:
        state.accounts = before
        raise ImpossibleEventError(record, str(error)) from error
    state.head, state.records = record.digest, record.seq + 1


def ticked(accounts: Accounts, record: Record) -> Accounts:
    """The accounts at the moment of the record, by both clocks, before what it says."""
    if accounts.calendar is not None:
        accounts = _on_the_calendar(accounts, record)
    return accounts.tick(record.elapsed_ms)


def _on_the_calendar(accounts: Accounts, record: Record) -> Accounts:
    assert accounts.calendar is not None
    calendar, at_ms = accounts.calendar, _ms(record.at)
    if isinstance(record.event, Opened):
        calendar = calendar.open_session(at_ms)
    return accounts._replace(calendar=calendar.tick(at_ms, record.elapsed_ms))


def _apply(  # noqa: PLR0912 - a case for each kind of event
    state: RunState, event: Event, record: Record
) -> None:
    if state.concluded is not None and not isinstance(event, Amended):
        raise ValueError("the run is concluded")
    if isinstance(event, Opened):
        state.accounts = state.accounts.open_session()
    at_ms, moment = _ms(record.at), Moment(max(0, len(state.opened) - 1), record.elapsed_ms)
    state.accounts = state.accounts.tick(record.elapsed_ms)
    match event:
        case Reserved():
            _reserved(state, event, record.elapsed_ms)
        case Settled():
            _settled(state, event, moment)
        case GenerationAsked():
            _asked(state, event, moment)
        case PanelAsked():
            _panel_asked(state, event, moment)
        case GenerationTold():
            _told(state, event, moment)
        case Opened():
            state.opened.append(event)
            state.opened_ms.append(at_ms)
            state.setup_failed = None
        case Fired():
            _fired(state, event)
        case Decided():
            _decided(state, event)
        case Overridden():
            state.overridden.append(event)
        case Withdrawn():
            state.withdrawn.append(event)
        case Amended():
            _amended(state, event, at_ms)
        case Concluded():
            if state.accounts.holds:
                raise ValueError("attempts are still open")
            state.concluded = event
        case Planned():
            raise ValueError("a run has one plan")
        case _:
            assert_never(event)
    if isinstance(event, Opened | GenerationTold | Concluded):
        _compare_clocks(state, event, at_ms - record.elapsed_ms)


def _compare_clocks(state: RunState, event: Event, offset_ms: int) -> None:
    """Note a wall's clock that was set, or a machine that slept: what people read jumps then."""
    jump_ms = offset_ms - state.wall_offset_ms
    if not isinstance(event, Opened) and abs(jump_ms) > CLOCK_JUMP_MS:
        state.clock_jumps_ms.append(jump_ms)
    state.wall_offset_ms = offset_ms


def _asked(state: RunState, event: GenerationAsked, moment: Moment) -> None:
    if state.current is not None:
        raise ValueError(f"generation {state.current.number} is not told yet")
    if event.generation != state.asked:
        raise ValueError(f"expected generation {state.asked}, got {event.generation}")
    resolved = state.plan.resolved
    if event.generation >= resolved.generations:
        raise ValueError(f"the plan has {resolved.generations} generations")
    shape = (len(event.points), len(event.seeds))
    if shape != (resolved.population, resolved.seeds_per_candidate):
        raise ValueError(
            f"{shape[0]} points on {shape[1]} seeds, the plan has {resolved.population} on "
            f"{resolved.seeds_per_candidate}"
        )
    _require_search(state)
    if event.distances and len(event.distances) != len(event.points):
        raise ValueError(f"{len(event.points)} points have {len(event.distances)} distances")
    campaign = state.plan.campaign
    if campaign is not None and event.seeds != campaign.seeds:
        raise ValueError(f"seeds {event.seeds}, the campaign has {campaign.seeds}")
    state.current = Generation(
        event.generation,
        event.points,
        seeds=event.seeds,
        distances=event.distances,
        conditions=() if campaign is None else campaign.conditions,
        asked_at=moment,
    )


def _require_search(state: RunState) -> None:
    if state.decided is not None or ("finalists", 0) in state.panels:
        raise ValueError("the search is over")


def _require_undecided(state: RunState) -> None:
    if state.decided is not None:
        raise ValueError("the search is decided")


def _panel_asked(state: RunState, event: PanelAsked, moment: Moment) -> None:
    _require_undecided(state)
    expected = sum(name == event.panel for name, _ in state.panels)
    if event.number != expected:
        raise ValueError(f"expected {event.panel} panel {expected}, got {event.number}")
    if event.panel == "proxy":
        _check_paired(state, event)
    if len(event.arms) != len(event.seeds):
        raise ValueError(f"{len(event.arms)} arms, and seeds for {len(event.seeds)}")
    if any(not own or len(set(own)) < len(own) for own in event.seeds):
        raise ValueError(f"every arm needs seeds, each once, got {event.seeds}")
    state.panels[event.panel, event.number] = Panel(
        event.number,
        tuple(arm.point for arm in event.arms),
        name=event.panel,
        arms=event.arms,
        seeds=event.seeds,
        asked_at=moment,
    )


def _check_paired(state: RunState, event: PanelAsked) -> None:
    current, proxy = state.current, state.plan.proxy
    if proxy is None or current is None:
        raise ValueError("there is no generation to be evaluated short too")
    if event != paired_panel(current, proxy):
        raise ValueError(f"it is not generation {current.number} evaluated short")


def paired_panel(generation: Generation, terms: ProxyTerms) -> PanelAsked:
    """The generation's points on its own seeds, evaluated short."""
    varied = terms.varied
    arms = tuple(
        Arm(
            name=f"candidate {number}",
            point=point,
            settings=varied.settings,
            length=varied.length,
        )
        for number, point in enumerate(generation.points)
    )
    seeds = tuple(generation.seeds for _ in arms)
    return PanelAsked(panel="proxy", arms=arms, seeds=seeds)


def _fired(state: RunState, event: Fired) -> None:
    state.fired.append(event)
    if event.decision == "stop":
        state.ended = event


def _decided(state: RunState, event: Decided) -> None:
    _require_undecided(state)
    if state.accounts.holds:
        raise ValueError("attempts are still open")
    state.decided = event


def _current(state: RunState, number: int) -> Generation:
    if state.current is None or state.current.number != number:
        raise ValueError(f"generation {number} is not the one in progress")
    return state.current


def _open_batch(state: RunState, event: Reserved | Settled) -> Batch:
    """Where evaluations may be reserved and settled now."""
    if event.panel is None:
        return _current(state, event.generation)
    panel = state.panel(event.panel, event.generation)
    if panel is None:
        raise ValueError(f"{event.panel} panel {event.generation} was never asked")
    return panel


def _reserved(state: RunState, event: Reserved, elapsed_ms: int) -> None:
    if not state.opened:
        raise ValueError("no session is open to start an attempt")
    if event.panel is not None:
        _require_undecided(state)
    elif state.panels:  # without any a search ends with its generations
        _require_search(state)
    batch = _open_batch(state, event)
    key = (event.candidate, event.seed)
    count = len(batch.points)
    if not (0 <= event.candidate < count and event.seed in batch.seeds_of(event.candidate)):
        raise ValueError(f"candidate {event.candidate}, seed {event.seed} was never asked for")
    tries = batch.tries.get(key, ())
    if tries and batch.result(*key) is not None:
        raise ValueError(f"candidate {event.candidate}, seed {event.seed} is already paid for")
    if event.attempt != len(tries) + 1:
        raise ValueError(f"expected attempt {len(tries) + 1}, got {event.attempt}")
    place, apart = (event.panel, event.generation, *key), event.panel is not None
    state.accounts = state.accounts.reserve(
        place, event.reserve_ms, elapsed_ms, apart=apart, slot=event.slot
    )
    session = len(state.opened) - 1
    batch.tries[key] = (*tries, Try(session, event, reserved_ms=elapsed_ms))
    if session not in state.starts_ms:
        state.starts_ms[session] = elapsed_ms


def _settled(state: RunState, event: Settled, moment: Moment) -> None:
    batch = _open_batch(state, event)
    key = (event.candidate, event.seed)
    tries = batch.tries.get(key, ())
    if not tries or tries[-1].settled or tries[-1].reserved.attempt != event.attempt:
        raise ValueError(f"attempt {event.attempt} of {key} is not open")
    if (event.score is None) == (event.status is Status.OK):
        raise ValueError(f"status {event.status} with score {event.score}")
    if event.again is not None and event.status in (Status.OK, Status.LOST, Status.CANCELLED):
        raise ValueError(f"status {event.status} is not a failure to try again")
    place = (event.panel, event.generation, *key)
    state.accounts = state.accounts.settle(
        place, event.charged_ms, final=event.final, elapsed_ms=moment.ms
    )
    ended = tries[-1]._replace(settled=event, settled_at=moment)
    batch.tries[key] = (*tries[:-1], ended)
    _noted(state, event)


def _noted(state: RunState, event: Settled) -> None:
    """What rules ask of the first one of its kind."""
    if event.status is Status.OK or event.recovered or state.setup_failed is not None:
        return
    if is_setup(event.status, event.cause):
        state.setup_failed = event


def _told(state: RunState, event: GenerationTold, moment: Moment) -> None:
    generation = _current(state, event.generation)
    if not generation.closed:
        raise ValueError("it is told before every evaluation is settled")
    generation.told, generation.told_at = event, moment
    state.told.append(generation)
    state.current = None


def _amended(state: RunState, event: Amended, at_ms: int) -> None:
    if event.generations < state.asked:
        begun = counted(state.asked, "generation")
        raise ValueError(f"{begun} are begun, and these caps pay for {event.generations} alone")
    is_over = state.concluded is not None or state.decided is not None
    if is_over and (state.panel("finalists") or event.generations <= state.finished):
        raise ValueError("the run is concluded, and this gives it nothing more to do")
    resolved = state.plan.resolved
    if state.panel("finalists") is not None and event.generations != resolved.generations:
        raise ValueError(
            "the search is over, what it found is being compared with the baseline: its "
            f"{resolved.generations} generations stay, the other caps can change"
        )
    resolved = resolved.model_copy(update={"generations": event.generations})
    if resolved.evaluations > event.caps.evaluations:
        raise ValueError(
            f"{counted(event.caps.evaluations, 'evaluation')} cannot pay for "
            f"{counted(event.generations, 'generation')}"
        )
    if event.caps.cost is not None and state.plan.price_per_device_hour == 0:
        raise ValueError("the run began without a price, so no cap on cost can hold it")
    calendar, before = _calendar(event.caps.window, state.began_ms, at_ms), state.accounts.calendar
    if calendar is not None and before is not None:  # a clock set back gains no time here either
        calendar = before._replace(deadline_ms=calendar.deadline_ms)
    accounts = state.accounts.amend(event.caps, calendar)
    state.plan = state.plan.model_copy(update={"caps": event.caps, "resolved": resolved})
    state.accounts = accounts._replace(apart_cap=state.plan.apart)
    state.amended.append(event)
    state.concluded = state.decided = state.ended = None
