"""What a ledger means: `state = fold(records)`. Everything is derived, nothing is stored.

`apply` refuses events that cannot follow what came before, so folding a ledger also proves that it
tells one consistent story: every reservation settled once, no cap passed, no generation told twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf, nextafter
from typing import assert_never

from budgets.accounts import Accounts
from budgets.events import (
    Concluded,
    Event,
    Fired,
    GenerationAsked,
    GenerationTold,
    Opened,
    Overridden,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.ledger import Record
from budgets.terms import Plan


class ImpossibleEventError(Exception):
    """An event that cannot follow the records before it."""

    def __init__(self, record: Record, why: str) -> None:
        place = f"record {record.seq} at byte {record.offset}"
        super().__init__(f"{place} ({record.event.kind}) cannot follow what precedes it: {why}")
        self.record = record


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt at an evaluation: open until it is settled."""

    session: int
    reserved: Reserved
    settled: Settled | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """Points to evaluate, and what has come of them. Keys are (candidate, seed)."""

    number: int
    points: tuple[tuple[float, ...], ...]
    seeds: tuple[int, ...]
    tries: Mapping[tuple[int, int], tuple[Try, ...]] = field(default_factory=dict)
    told: GenerationTold | None = None

    def evaluations(self) -> Iterator[tuple[int, int]]:
        """Every evaluation of the generation, in candidate order."""
        return ((c, seed) for c in range(len(self.points)) for seed in self.seeds)

    def result(self, candidate: int, seed: int) -> Settled | None:
        """How the evaluation ended for good; None while it is owed."""
        for attempt in self.tries.get((candidate, seed), ()):
            if attempt.settled is not None and attempt.settled.status.final:
                return attempt.settled
        return None

    def owed(self) -> list[tuple[int, int]]:
        """Evaluations without a final result and not in flight, in candidate order."""
        return [
            key for key in self.evaluations() if self.result(*key) is None and not self._flying(key)
        ]

    def _flying(self, key: tuple[int, int]) -> bool:
        tries = self.tries.get(key, ())
        return bool(tries) and tries[-1].settled is None

    def results(self) -> list[Settled]:
        """Final results so far, in candidate order."""
        return [r for key in self.evaluations() if (r := self.result(*key)) is not None]

    @property
    def closed(self) -> bool:
        """Whether every evaluation has its final result."""
        return all(self.result(*key) is not None for key in self.evaluations())

    @property
    def failed(self) -> list[Settled]:
        return [r for r in self.results() if r.status is not Status.OK]

    def score(self, candidate: int) -> float | None:
        """Mean score over the seeds; None unless every one of them is healthy."""
        scores = [r.score for s in self.seeds if (r := self.result(candidate, s)) is not None]
        healthy = [s for s in scores if s is not None]
        return sum(healthy) / len(healthy) if len(healthy) == len(self.seeds) else None

    def scores(self) -> list[float | None]:
        """One entry a candidate, in candidate order."""
        return [self.score(candidate) for candidate in range(len(self.points))]

    def fitness(self) -> list[float]:
        """What the search is told: scores, with the failed finite and worse than every healthy one.

        The failed follow the worst healthy score in candidate order, each by the least step there
        is: only ranks matter to the search. Raises ValueError when none is healthy.
        """
        scores = self.scores()
        worst = max((s for s in scores if s is not None), default=None)
        if worst is None:
            raise ValueError("a generation without a healthy candidate has no fitness")
        told = []
        for score in scores:
            if score is None:
                worst = nextafter(worst, inf)
            told.append(worst if score is None else score)
        return told


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as its ledger tells it."""

    plan: Plan
    head: str
    records: int
    accounts: Accounts
    opened: tuple[Opened, ...] = ()
    generations: tuple[Generation, ...] = ()
    fired: tuple[Fired, ...] = ()
    overridden: tuple[Overridden, ...] = ()
    concluded: Concluded | None = None

    @property
    def told(self) -> tuple[Generation, ...]:
        return tuple(g for g in self.generations if g.told is not None)

    @property
    def current(self) -> Generation | None:
        """The generation asked but not told yet."""
        last = self.generations[-1] if self.generations else None
        return last if last is not None and last.told is None else None

    def open_tries(self) -> list[Try]:
        """Attempts in flight; after a crash, those that nobody settled."""
        if self.current is None:
            return []
        return [t for ts in self.current.tries.values() for t in ts if t.settled is None]

    @property
    def finished(self) -> int:
        """Generations that are over: told to the search, or evaluated when there is none."""
        if self.plan.search is not None:
            return len(self.told)
        return sum(g.closed for g in self.generations)


def begin(record: Record) -> RunState:
    """The state after a ledger's first record."""
    if not isinstance(record.event, Planned):
        raise ImpossibleEventError(record, "a ledger begins with its plan")
    plan = record.event.plan
    accounts = Accounts(plan.caps, plan.price_per_device_hour)
    if plan.calibration is not None:  # what was paid to plan the run is part of its price
        made = plan.calibration
        open_ms = (made.open_ms,) if made.open_ms else ()
        accounts = replace(accounts, device_ms=made.charged_ms, sessions_ms=open_ms)
    return RunState(plan, record.digest, 1, accounts)


def fold(records: Iterable[Record]) -> RunState:
    """The state after all of `records`. Raises ImpossibleEventError, naming the first bad one."""
    iterator = iter(records)
    return reduce(apply, iterator, begin(next(iterator)))


def apply(state: RunState, record: Record) -> RunState:
    """The state after one more record. Raises ImpossibleEventError."""
    accounts = state.accounts
    if isinstance(record.event, Opened):
        accounts = accounts.open_session()
    accounts = accounts.tick(record.elapsed_ms)
    state = replace(state, head=record.digest, records=record.seq + 1, accounts=accounts)
    try:
        if state.concluded is not None:
            raise ValueError("the run is concluded")
        return _apply(state, record.event)
    except ValueError as error:
        raise ImpossibleEventError(record, str(error)) from error


def _apply(state: RunState, event: Event) -> RunState:  # noqa: PLR0911 - one return a word
    match event:
        case Planned():
            raise ValueError("a run has one plan")
        case Opened():
            return replace(state, opened=(*state.opened, event))
        case GenerationAsked():
            return _asked(state, event)
        case Reserved():
            return _reserved(state, event)
        case Settled():
            return _settled(state, event)
        case GenerationTold():
            return _told(state, event)
        case Fired():
            return replace(state, fired=(*state.fired, event))
        case Overridden():
            return replace(state, overridden=(*state.overridden, event))
        case Concluded():
            return _concluded(state, event)
        case _:
            assert_never(event)


def _asked(state: RunState, event: GenerationAsked) -> RunState:
    if state.current is not None:
        raise ValueError(f"generation {state.current.number} is not told yet")
    if event.generation != len(state.generations):
        raise ValueError(f"expected generation {len(state.generations)}, got {event.generation}")
    generation = Generation(event.generation, event.points, event.seeds)
    return replace(state, generations=(*state.generations, generation))


def _current(state: RunState, number: int) -> Generation:
    if state.current is None or state.current.number != number:
        raise ValueError(f"generation {number} is not the one in progress")
    return state.current


def _with_tries(
    state: RunState, generation: Generation, key: tuple[int, int], tries: tuple[Try, ...]
) -> RunState:
    updated = replace(generation, tries={**generation.tries, key: tries})
    return replace(state, generations=(*state.generations[:-1], updated))


def _reserved(state: RunState, event: Reserved) -> RunState:
    if not state.opened:
        raise ValueError("no session is open to start an attempt")
    generation = _current(state, event.generation)
    key = (event.candidate, event.seed)
    if not (0 <= event.candidate < len(generation.points) and event.seed in generation.seeds):
        raise ValueError(f"candidate {event.candidate}, seed {event.seed} was never asked for")
    if generation.result(*key) is not None:
        raise ValueError(f"candidate {event.candidate}, seed {event.seed} is already paid for")
    tries = generation.tries.get(key, ())
    if event.attempt != len(tries) + 1:
        raise ValueError(f"expected attempt {len(tries) + 1}, got {event.attempt}")
    accounts = state.accounts.reserve((event.generation, *key), event.reserve_ms)
    attempt = Try(len(state.opened) - 1, event)
    return replace(_with_tries(state, generation, key, (*tries, attempt)), accounts=accounts)


def _settled(state: RunState, event: Settled) -> RunState:
    generation = _current(state, event.generation)
    key = (event.candidate, event.seed)
    tries = generation.tries.get(key, ())
    if not tries or tries[-1].settled or tries[-1].reserved.attempt != event.attempt:
        raise ValueError(f"attempt {event.attempt} of {key} is not open")
    if (event.score is None) == (event.status is Status.OK):
        raise ValueError(f"status {event.status} with score {event.score}")
    accounts = state.accounts.settle(
        (event.generation, *key), event.charged_ms, final=event.status.final
    )
    closed = replace(tries[-1], settled=event)
    return replace(_with_tries(state, generation, key, (*tries[:-1], closed)), accounts=accounts)


def _told(state: RunState, event: GenerationTold) -> RunState:
    generation = _current(state, event.generation)
    if not generation.closed:
        raise ValueError("it is told before every evaluation is settled")
    updated = replace(generation, told=event)
    return replace(state, generations=(*state.generations[:-1], updated))


def _concluded(state: RunState, event: Concluded) -> RunState:
    if state.accounts.holds:
        raise ValueError("attempts are still open")
    return replace(state, concluded=event)
