"""A run's state: `state = fold(records)`, and nothing derived is stored.

`apply` alone changes a state, in place, and refuses events that cannot follow what came before. So
folding a ledger also proves it consistent: every reservation settled once, no cap exceeded, no
generation told twice. A settlement costs the same whatever the batch's size.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from itertools import chain
from math import inf, nextafter

from budgets.accounts import Accounts, Attempt
from budgets.events import (
    Amended,
    Asked,
    Concluded,
    Decided,
    Event,
    Fired,
    GenerationTold,
    Opened,
    Overridden,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.failure_causes import cause_of
from budgets.ledger import Record
from budgets.plan import Calibration, ComparisonName, Configuration, Plan
from budgets.stats import total

Evaluation = tuple[int, int]
"""Names an evaluation of a batch: candidate and seed."""


@dataclass(slots=True)
class Batch:
    """Configurations on seeds, with attempts and results: a generation, or a comparison.

    An evaluation is either pending, running, or has its result.
    """

    comparison: ComparisonName | None  # None: a generation
    number: int  # of the generation; 0 of a comparison
    configurations: tuple[Configuration, ...]
    seeds: tuple[tuple[int, ...], ...]  # of each configuration
    told: GenerationTold | None = None
    attempts: dict[Evaluation, tuple[Attempt, ...]] = field(default_factory=dict)
    pending: list[Evaluation] = field(init=False)  # in order
    planned: int = field(init=False)  # evaluations
    cost: float = field(init=False)  # of all, in evaluations of the search
    settled: int = 0  # evaluations with a result
    done_cost: float = 0.0  # of these
    losses: Counter[Evaluation] = field(default_factory=Counter)  # in this session, by unfinished
    sign: int = 1  # see `Plan.sign`

    def __post_init__(self) -> None:
        self.pending = sorted(self.evaluations())
        self.planned = len(self.pending)
        self.cost = sum(self.configurations[c].cost_factor for c, _ in self.pending)

    @property
    def points(self) -> tuple[tuple[float, ...], ...]:
        """The configurations' points of the unit cube."""
        return tuple(one.point for one in self.configurations)

    def evaluations(self) -> Iterator[Evaluation]:
        """Every evaluation of the batch, in candidate order."""
        return ((c, seed) for c, seeds in enumerate(self.seeds) for seed in seeds)

    @property
    def closed(self) -> bool:
        """Whether every evaluation has its result."""
        return self.settled == self.planned

    def result(self, candidate: int, seed: int) -> Settled | None:
        """How the evaluation ended for good; None while it is pending or running."""
        attempts = self.attempts.get((candidate, seed))
        last = attempts[-1].settled if attempts else None
        return last if last is not None and last.final else None

    def results(self) -> list[Settled]:
        """Results so far, in candidate order."""
        return [r for key in self.evaluations() if (r := self.result(*key)) is not None]

    def ends(self) -> Iterator[Settled]:
        """Every settled attempt, final or not, in candidate order."""
        ends = (a.settled for key in self.evaluations() for a in self.attempts.get(key, ()))
        return (end for end in ends if end is not None)

    @property
    def failed(self) -> list[Settled]:
        return [r for r in self.results() if r.status is not Status.OK]

    def scores_by_seed(self, candidate: int) -> dict[int, float]:
        """The candidate's healthy scores so far."""
        results = ((seed, self.result(candidate, seed)) for seed in self.seeds[candidate])
        return {s: r.score for s, r in results if r is not None and r.score is not None}

    def statuses(self, candidate: int) -> dict[str, int]:
        """How many of the candidate's results have each status."""
        results = (self.result(candidate, seed) for seed in self.seeds[candidate])
        return dict(Counter(str(one.status) for one in results if one is not None))

    def score(self, candidate: int) -> float | None:
        """Mean score over the seeds; None unless every one of them is healthy."""
        healthy = self.scores_by_seed(candidate)
        whole = len(healthy) == len(self.seeds[candidate])
        return total(healthy.values()) / len(healthy) if whole else None

    def scores(self) -> list[float | None]:
        """One entry a candidate, in candidate order."""
        return [self.score(candidate) for candidate in range(len(self.configurations))]

    @property
    def healthy(self) -> list[float]:
        """The scores of candidates that have one, in candidate order."""
        return [score for score in self.scores() if score is not None]

    def to_minimize(self) -> list[float | None]:
        """The scores, negated where higher is better."""
        return [None if score is None else self.sign * score for score in self.scores()]

    def fitness(self) -> list[float]:
        """What the search is told, in candidate order: finite, the failed worse than every healthy.

        Failed candidates follow the worst healthy score by the smallest steps: only ranks matter.
        """
        scores, ranked = self.to_minimize(), []
        worst = max((score for score in scores if score is not None), default=0.0)
        for score in scores:
            if score is None:
                worst = nextafter(worst, inf)
            ranked.append(worst if score is None else score)
        return ranked


@dataclass(slots=True)
class RunState:
    """A run as its ledger records it."""

    planned: Plan  # the first
    genesis: str  # digest of the first record: names the run
    head: str
    records: int
    accounts: Accounts
    seen: datetime  # the last record, by the wall's clock
    opened: list[Opened] = field(default_factory=list)
    completed: list[Batch] = field(default_factory=list)  # generations told to the search
    current: Batch | None = None  # the generation that is asked and not told yet
    comparisons: dict[ComparisonName, Batch] = field(default_factory=dict)
    ended: Fired | None = None  # the rule that stopped the search, unless caps changed since
    decided: Decided | None = None
    fired: list[Fired] = field(default_factory=list)
    overridden: list[Overridden] = field(default_factory=list)
    amended: list[Amended] = field(default_factory=list)
    setup_failed: Settled | None = None  # the session's first for which nothing can be evaluated
    concluded: Concluded | None = None

    @property
    def plan(self) -> Plan:
        """The plan with amended caps."""
        return self.accounts.plan

    @property
    def generations(self) -> tuple[Batch, ...]:
        """Every generation that was asked, in order."""
        return tuple(self.completed) if self.current is None else (*self.completed, self.current)

    def is_closed(self, name: ComparisonName) -> bool:
        """Whether this comparison was asked and has every result."""
        return name in self.comparisons and self.comparisons[name].closed

    def batch(self, event: Reserved | Settled) -> Batch:
        """The generation or comparison that an evaluation belongs to, which was asked."""
        if event.comparison is None:
            return self.generations[event.generation]
        return self.comparisons[event.comparison]

    def batches(self) -> Iterator[Batch]:
        """Every generation, then every comparison, in the order in which they were asked."""
        return chain(self.generations, self.comparisons.values())

    def ends(self) -> Iterator[Settled]:
        """Every settled attempt, batch by batch."""
        return chain.from_iterable(batch.ends() for batch in self.batches())

    @property
    def begun(self) -> int:
        """The number of generations that were asked."""
        return len(self.completed) + (self.current is not None)

    @property
    def finished(self) -> int:
        """The number of generations told to the search, or evaluated where there is none."""
        if self.plan.search is not None or self.current is None:
            return len(self.completed)
        return len(self.completed) + self.current.closed


Observer = Callable[[RunState, Event], None]
"""Called with each event and the state after it."""


class ImpossibleEventError(Exception):
    """An event that cannot follow the records before it."""

    def __init__(self, record: Record, why: str) -> None:
        place = f"record {record.seq} at byte {record.offset}"
        super().__init__(f"{place} ({record.event.kind}) cannot follow what precedes it: {why}")
        self.record = record
        self.why = why


def fold(records: Iterable[Record]) -> RunState:
    """The state after all of `records`. Raises ImpossibleEventError; ValueError without any."""
    if (state := reduce(apply, records, None)) is None:
        raise ValueError("the ledger holds no whole record yet: begin the run with its own command")
    return state


def _begun(record: Record) -> RunState:
    if not isinstance(record.event, Planned):
        raise ImpossibleEventError(record, "a ledger begins with its plan")
    plan, calibration = record.event.plan, record.event.plan.calibration or Calibration()
    open_ms, charged_ms = calibration.open_ms, calibration.charged_ms
    began_ms = record.at_ms - open_ms
    accounts = Accounts(plan, began_ms, began_ms, before_ms=open_ms, device_ms=charged_ms)
    return RunState(plan, record.digest, record.digest, 1, accounts, record.moment)


def apply(state: RunState | None, record: Record) -> RunState:
    """Advance `state`, in place, by one record; None before the first. Returns it.

    Raises ImpossibleEventError and leaves it as it was.
    """
    if state is None:
        return _begun(record)
    before, event = state.accounts, record.event
    try:
        is_over = state.concluded is not None and not isinstance(event, Amended)
        _require(not is_over, "the run is concluded")
        opens = isinstance(event, Opened)
        state.accounts = before.tick(record.elapsed_ms, record.at_ms, opens=opens)
        _apply(state, event)
    except ValueError as error:
        state.accounts = before
        raise ImpossibleEventError(record, str(error)) from error
    state.head, state.records, state.seen = record.digest, record.seq + 1, record.moment
    return state


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ValueError(otherwise)


def _apply(state: RunState, event: Event) -> None:  # noqa: PLR0912 - a case a kind
    match event:
        case Reserved():
            _reserved(state, event)
        case Settled():
            _settled(state, event)
        case Asked():
            _asked(state, event)
        case GenerationTold():
            batch = _in_progress(state, None, event.generation)
            _require(batch.closed, "it is told before every evaluation is settled")
            _require_coordinates(state, event.mean, event.guided.centre if event.guided else None)
            batch.told, state.current = event, None
            state.completed.append(batch)
        case Opened():
            state.opened.append(event)
            state.setup_failed = None
            for batch in state.batches():
                batch.losses.clear()
        case Fired():
            state.fired.append(event)
            if event.decision == "stop":
                state.ended = event
        case Decided():
            _require(state.decided is None, "the search is decided")
            _require_coordinates(state, event.point)
            _require(not state.accounts.holds, "attempts are still running")
            state.decided = event
        case Overridden():
            state.overridden.append(event)
        case Amended():
            _amended(state, event)
        case Concluded():
            _require(not state.accounts.holds, "attempts are still running")
            state.concluded = event
        case Planned():
            raise ValueError("a run has one plan")


def _asked(state: RunState, event: Asked) -> None:
    plan, begun, name, number = state.plan.resolved, state.begun, event.comparison, event.generation
    _require(state.decided is None, "the search is decided")
    is_seeded = len(event.configurations) == len(event.seeds) and all(event.seeds)
    _require(is_seeded, "every configuration needs seeds")
    _require_coordinates(state, *(one.point for one in event.configurations))
    batch = Batch(name, number, event.configurations, event.seeds, sign=state.plan.sign)
    if name is not None:
        _require(name not in state.comparisons, f"the comparison {name} was asked before")
        state.comparisons[name] = batch
        return
    _require(state.current is None, f"generation {begun - 1} is not told yet")
    is_next = number == begun < plan.generations
    _require(is_next, f"expected generation {begun} of {plan.generations}")
    shape = (len(batch.seeds), len(batch.seeds[0]))
    wanted = (plan.population, plan.seeds_per_candidate)
    _require(shape == wanted, f"{shape} points and seeds, the plan has {wanted}")
    _require(len({*event.seeds}) == 1, "all candidates of a generation have the same seeds")
    _require("finalists" not in state.comparisons, "the search is over")
    state.current = batch


def _require_coordinates(state: RunState, *points: tuple[float, ...] | None) -> None:
    size = len(state.plan.space.knobs)
    sizes = {len(point) for point in points if point is not None}
    _require(sizes <= {size}, f"every point needs {size} coordinates")


def _in_progress(state: RunState, comparison: ComparisonName | None, number: int) -> Batch:
    """The comparison or the generation whose evaluations may be reserved and settled now."""
    batch = state.comparisons.get(comparison) if comparison else state.current
    if batch is None or batch.number != number:
        raise ValueError(f"{comparison or f'generation {number}'} is not in progress")
    return batch


def _reserved(state: RunState, event: Reserved) -> None:
    _require(bool(state.opened), "no session is open to start an attempt")
    is_over = event.comparison is None and "finalists" in state.comparisons
    _require(not is_over and state.decided is None, "the search is over")
    batch = _in_progress(state, event.comparison, event.generation)
    key = (event.candidate, event.seed)
    at, number = bisect_left(batch.pending, key), len(batch.attempts.get(key, ())) + 1
    is_pending = batch.pending[at : at + 1] == [key]
    _require(is_pending, f"candidate {key[0]}, seed {key[1]} is not pending")
    _require(event.attempt == number, f"expected attempt {number}, got {event.attempt}")
    state.accounts = state.accounts.reserve(event)
    batch.attempts[key] = (*batch.attempts.get(key, ()), state.accounts.holds[event.place])
    del batch.pending[at]


def _settled(state: RunState, event: Settled) -> None:
    batch = _in_progress(state, event.comparison, event.generation)
    key, status = (event.candidate, event.seed), event.status
    is_running = event.place in state.accounts.holds
    _require(is_running, f"attempt {event.attempt} of {key} is not running")
    is_scored, is_failure = event.score is not None, status.final and status is not Status.OK
    _require(is_scored == (status is Status.OK), f"status {status} with score {event.score}")
    _require(is_failure or not event.retry, f"status {status} is not a failure to try again")
    state.accounts = state.accounts.settle(event)
    *earlier, last = batch.attempts[key]
    batch.attempts[key] = (*earlier, last._replace(settled=event))
    if event.final:
        del batch.losses[key]
        batch.settled += 1
        batch.done_cost += batch.configurations[key[0]].cost_factor
        return
    insort(batch.pending, key)
    cause = cause_of(status, event.cause)
    if cause is not None and cause.whose == "setup":
        if state.setup_failed is None and not event.recovered:
            state.setup_failed = event
    elif status is Status.LOST and last.session == len(state.opened) - 1:
        batch.losses[key] += 1


def _amended(state: RunState, event: Amended) -> None:
    plan, caps, generations = state.plan, event.caps, state.plan.resolved.generations
    what, most = f"tier {plan.tier}" if plan.tier else plan.phase, plan.nominal.evaluations
    larger = f"{what} has {most} evaluations at most: begin a run of a larger tier for more"
    _require(caps.evaluations <= most, larger)
    if plan.search is not None and caps.evaluations != plan.caps.evaluations:
        generations = max(1, caps.evaluations // plan.resolved.per_generation)
    is_over = state.concluded is not None or state.decided is not None
    is_compared = "finalists" in state.comparisons
    resolved = plan.resolved.model_copy(update={"generations": generations})
    begun = f"these caps pay for {generations} generations, {state.begun} are begun already"
    _require(generations >= state.begun, begun)
    has_more_to_do = not is_over or (not is_compared and generations > state.finished)
    _require(has_more_to_do, "the run is over, and this gives it nothing more to do")
    is_free = not is_compared or generations == plan.resolved.generations
    _require(is_free, "the search is over: its generations stay, the other caps can change")
    pays = resolved.evaluations <= caps.evaluations
    _require(pays, f"{caps.evaluations} evaluations do not pay for {generations} generations")
    has_price = caps.cost is None or plan.price_per_device_hour > 0
    _require(has_price, "the run began without a price, so no cap on cost can hold it")
    plan = plan.model_copy(update={"caps": caps, "resolved": resolved})
    state.accounts = state.accounts.amend(plan)
    state.amended.append(event)
    state.concluded = state.decided = state.ended = None
