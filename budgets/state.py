"""What a run is, as its ledger tells it. Everything is derived by `fold`, nothing is stored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf, nextafter
from typing import Any, NamedTuple

from budgets.accounts import Accounts
from budgets.events import (
    Amended,
    Concluded,
    Decided,
    Event,
    Fired,
    GenerationTold,
    Late,
    Opened,
    Overridden,
    Reserved,
    Salvaged,
    Settled,
    Status,
    Withdrawn,
)
from budgets.stats import total
from budgets.terms import Arm, Condition, PanelName, Plan


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
    salvaged: list[Salvaged] = field(default_factory=list)
    withdrawn: list[Withdrawn] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
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

    def batch(self, place: Reserved | Settled | Late) -> Batch:
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
