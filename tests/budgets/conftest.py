"""A small plan, runs told in memory and runs written to a disk, on a clock that tests turn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from budgets.events import (
    Asked,
    Concluded,
    Event,
    Fired,
    GenerationTold,
    Opened,
    Overridden,
    Owner,
    Planned,
    Reserved,
    Settled,
    Status,
)
from budgets.ledger import Ledger, Record
from budgets.plan import (
    Calibration,
    Caps,
    ComparisonName,
    Configuration,
    Confirmation,
    Devices,
    Envelope,
    Limits,
    Plan,
    Sample,
    SearchPlan,
)
from budgets.state import Batch, RunState, apply
from objectives.api import Variant
from objectives.space import Knob, SearchSpace
from tests.simulation.session import BEGAN, SimulatedClock

Outcome = float | Status
"""A healthy evaluation's score, or how it failed."""


def sample(seconds: float = 2.0, **fields: Any) -> Sample:
    values = {
        "seed": 1,
        "score": 1.0,
        "seconds": seconds,
        "startup_seconds": 0.5,
        "cpu_seconds": seconds,
        "train_flops": 1e6,
        "eval_flops": 1e5,
        **fields,
    }
    return Sample.model_validate(values)


def small_plan(**fields: Any) -> Plan:
    """P = 4, G = 2, S = 1 on two CPU slots, calibrated at 2 s; an attempt reserves 12 s."""
    envelope = Envelope(population=4, generations=2, seeds_per_candidate=1)
    values = {
        "run_id": "small",
        "phase": "phase1",
        "tier": "min",
        "nominal": envelope,
        "resolved": envelope,
        "reasons": (),
        "objective": {"name": "sphere", "settings": {}},
        "objective_fingerprint": "f" * 64,
        "space": SearchSpace(
            knobs=tuple(Knob(name=n, kind="linear", low=0.0, high=1.0, baseline=0.5) for n in "ab")
        ),
        "provenance": {},
        "search": SearchPlan(seed=7, sigma0=0.2, start=(0.5, 0.5)),
        "evaluation_seed": 123,
        "limits": Limits(wall_seconds=10.0, grace_seconds=1.0),
        "caps": Caps(evaluations=8),
        "devices": Devices(
            count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30
        ),
        "calibration": Calibration(samples=tuple(sample(score=1.0 + s) for s in (-0.1, 0.0, 0.1))),
        **fields,
    }
    return Plan.model_validate(values)


PICKING, FRESH, ON_LONG_RUN = (11, 12, 13), tuple(range(21, 29)), (31, 32)
"""Seeds of a confirmation: to pick the winner on, to judge it on, and with more FLOPs."""

OFF = Variant(name="synapses off", settings={"model": "gpt"})
LONGER = Variant(name="4 x FLOPs", settings={"factor": 4}, cost_factor=4.0)


def confirmation(**fields: Any) -> Confirmation:
    """Of 8 fresh seeds and 3 to pick on, with one control and a long run."""
    values = {
        "seeds": len(FRESH),
        "picking_seeds": len(PICKING),
        "best_candidates": 2,
        "control_seeds": 5,
        "controls": (OFF,),
        "long_run": LONGER,
        "long_run_seeds": len(ON_LONG_RUN),
        **fields,
    }
    return Confirmation.model_validate(values)


def confirmed_plan(**fields: Any) -> Plan:
    """P = 4, G = 3, tier target, compared on fresh seeds; the baseline scores 1, sd 0.005."""
    scores = (0.995, 1.0, 1.005)
    envelope = Envelope(population=4, generations=3, seeds_per_candidate=1)
    values = {
        "run_id": "judged",
        "tier": "target",
        "nominal": envelope,
        "resolved": envelope,
        "caps": Caps(evaluations=12),
        "calibration": Calibration(samples=tuple(sample(score=s) for s in scores)),
        "confirmation": confirmation(),
        **fields,
    }
    return small_plan(**values)


OPENED = Opened(
    host="here",
    owner=Owner(boot_id="boot", pid=11, start_ticks=22),
    workers=2,
    versions={"cma": "4.5.0"},
)


def asked(
    points: Iterable[tuple[float, ...]], number: int = 0, seeds: tuple[int, ...] = (5,)
) -> Asked:
    """A generation at these points."""
    own = tuple(Configuration(name="", point=point) for point in points)
    return Asked(generation=number, configurations=own, seeds=(seeds,) * len(own))


def reserved(candidate: int = 0, **fields: Any) -> Reserved:
    values = {"generation": 0, "seed": 5, "attempt": 1, "reserve_ms": 12_000, **fields}
    return Reserved(candidate=candidate, **values)


def settled(reservation: Reserved, outcome: Outcome = 1.0, **fields: Any) -> Settled:
    status = outcome if isinstance(outcome, Status) else Status.OK
    values = {
        "comparison": reservation.comparison,
        "generation": reservation.generation,
        "candidate": reservation.candidate,
        "seed": reservation.seed,
        "attempt": reservation.attempt,
        "status": status,
        "score": None if isinstance(outcome, Status) else outcome,
        "charged_ms": 2000,
        "seconds": 2.0,
        "cpu_seconds": 2.0,
        "cause": "" if status is Status.OK else f"it was {status}",
        **fields,
    }
    return Settled(**values)


def told(number: int = 0, mean: tuple[float, ...] = (0.4, 0.6)) -> GenerationTold:
    return GenerationTold(generation=number, digest="d" * 32, mean=mean, sigma=0.2, axis_ratio=1.5)


class Story:
    """A run told event by event, without a disk. What cannot follow raises and is forgotten."""

    state: RunState

    def __init__(self, plan: Plan) -> None:
        self.elapsed_ms = 0
        self.records: list[Record] = []
        self.say(Planned(plan=plan))
        self.open()

    def say(self, *events: Event) -> RunState:
        for event in events:
            number = len(self.records)
            moment = BEGAN + timedelta(milliseconds=self.elapsed_ms)
            at, digest = moment.isoformat(timespec="milliseconds"), f"{number:032x}"
            record = Record(number, at, self.elapsed_ms, event, digest, 100 * number, bytes(99))
            self.state = apply(self.state if self.records else None, record)
            self.records.append(record)
        return self.state

    @property
    def current(self) -> Batch:
        assert self.state.current is not None
        return self.state.current

    def open(self) -> RunState:
        self.elapsed_ms = 0
        return self.say(OPENED)

    def ask(
        self,
        seeds: tuple[int, ...] = (5,),
        candidates: int | None = None,
        points: Sequence[tuple[float, ...]] = (),
    ) -> RunState:
        population, number = candidates or self.state.plan.resolved.population, self.state.begun
        usual = [(0.1 * c, 0.1 * number) for c in range(population)]
        return self.say(asked(points or usual, number, seeds))

    def reserve(self, candidate: int, seed: int = 5) -> Reserved:
        """The evaluation's next attempt sets the plan's worst case aside."""
        reservation = reserved(
            candidate,
            generation=self.current.number,
            seed=seed,
            attempt=len(self.current.attempts.get((candidate, seed), ())) + 1,
            reserve_ms=self.state.plan.limits.reserve_ms,
        )
        self.say(reservation)
        return reservation

    def evaluate(self, candidate: int, outcome: Outcome = 1.0, **fields: Any) -> RunState:
        reservation = self.reserve(candidate, fields.pop("seed", 5))
        return self.say(settled(reservation, outcome, **fields))

    def score(self, *outcomes: Outcome, **fields: Any) -> Batch:
        """A whole generation with these outcomes, one a candidate; not told yet."""
        self.ask(candidates=len(outcomes))
        for candidate, outcome in enumerate(outcomes):
            self.evaluate(candidate, outcome, **fields)
        return self.state.generations[-1]

    def tell(self, mean: tuple[float, ...] = (0.4, 0.6)) -> RunState:
        return self.say(told(self.current.number, mean))

    def finish(self) -> RunState:
        """All planned generations, every evaluation healthy."""
        for _ in range(len(self.state.generations), self.state.plan.resolved.generations):
            population = self.state.plan.resolved.population
            self.score(*(1.0 + 0.1 * c for c in range(population)))
            self.tell()
        return self.state

    def compare(
        self,
        name: ComparisonName,
        arms: Sequence[Configuration],
        outcomes: Sequence[Mapping[int, Outcome]],
        **fields: Any,
    ) -> RunState:
        """A whole comparison with these outcomes, of each arm by seed."""
        self.say(
            Asked(comparison=name, configurations=tuple(arms), seeds=tuple(map(tuple, outcomes)))
        )
        for candidate, own in enumerate(outcomes):
            for seed, outcome in own.items():
                reservation = reserved(candidate, comparison=name, seed=seed)
                self.say(reservation, settled(reservation, outcome, **fields))
        return self.state


def make_story(**fields: Any) -> Story:
    """A story that is open, on the small plan with some fields changed."""
    return Story(small_plan(**fields))


BASE, BETTER = (0.5, 0.5), (0.4, 0.6)
GENERATIONS = ((1.00, 1.02, 1.01, 1.03), (0.99, 1.01, 1.00, 1.02), (0.98, 1.00, 0.99, 1.01))
FINALISTS = {"average": 0.98, "mean": 0.985, "best candidate 1": 0.99, "best candidate 2": 0.995}


def told_of(
    plan: Plan | None = None,
    *,
    generations: Iterable[Sequence[Outcome]] = GENERATIONS,  # of each candidate, on every seed
    baseline: Sequence[Outcome] = 11 * (1.0,),  # on the picking seeds, then on the fresh ones
    finalists: Mapping[str, tuple[Outcome, ...] | Outcome] | None = None,
    winner: Sequence[Outcome] | None = None,
    long_run: tuple[Sequence[Outcome], Sequence[Outcome]] | None = None,
    best: str = "average",
    metrics: Mapping[str, float] | None = None,  # of the winner's comparison
) -> Story:
    """A run as far as its outcomes are given; `decide` can follow. `long_run`: (baseline, best).

    Without a plan it has one that fits the generations. None: not asked for. Every
    finalist's score may be one number for all seeds.
    """
    generations = tuple(generations)
    if plan is None:
        shape = Envelope(
            population=len(generations[0]) if generations else 4,
            generations=max(3, len(generations)),
            seeds_per_candidate=1,
        )
        plan = confirmed_plan(resolved=shape, caps=Caps(evaluations=shape.evaluations))
    story = Story(plan)
    confirmed = story.state.plan.confirmation
    fresh = FRESH[: 0 if confirmed is None else confirmed.seeds]
    reference = Configuration(name="baseline", point=BASE)
    story.compare("reference", [reference], [dict(zip((*PICKING, *fresh), baseline, strict=False))])
    for own in generations:
        story.ask(seeds=tuple(range(5, 5 + story.state.plan.resolved.seeds_per_candidate)))
        for candidate, seed in story.current.evaluations():
            story.evaluate(candidate, own[candidate], seed=seed)
        story.tell(BETTER)
    if finalists is None and winner is None:
        return story
    names = FINALISTS if finalists is None else finalists
    compared = [
        Configuration(name=n, point=(0.4, 0.6 + 0.01 * place)) for place, n in enumerate(names)
    ]
    given = [o if isinstance(o, tuple) else len(PICKING) * (o,) for o in names.values()]
    story.compare("finalists", compared, [dict(zip(PICKING, o, strict=True)) for o in given])
    if winner is None:
        return story
    arms = [next(arm for arm in compared if arm.name == best)]
    scores = dict(zip(fresh, winner, strict=False))
    story.compare("winner", arms, [scores], metrics=dict(metrics or {}))
    if long_run is not None:
        arms = [
            Configuration(name=n, point=BASE, settings=LONGER.settings, cost_factor=4.0)
            for n in ("baseline", best)
        ]
        story.compare("long_run", arms, [dict(zip(ON_LONG_RUN, o, strict=True)) for o in long_run])
    return story


@dataclass
class Disk:
    """The directory of a whole small run."""

    place: Path
    time: SimulatedClock

    def open(self) -> Ledger:
        """The run's ledger, read and ready to append."""
        ledger = Ledger(self.place, self.time.clock)
        list(ledger.replay())
        return ledger

    def write(self, events: list[Event]) -> Path:
        """A closed ledger that holds `events`, two milliseconds apart."""
        with self.open() as ledger:
            for event in events:
                self.time.advance_to(self.time.seconds + 0.002)
                ledger.append(ledger.seal(event))
        return ledger.path


@pytest.fixture
def whole() -> list[Event]:
    """Two sessions; a failure, a loss, an overridden rule: every word there is."""
    story = Story(small_plan(run_id="whole"))
    story.ask()
    story.evaluate(0, 1.25)
    story.evaluate(1, Status.NAN)
    story.reserve(2)
    story.open()
    story.say(settled(reserved(2), Status.LOST, charged_ms=12_000, recovered=True))
    story.evaluate(2, 0.5, metrics={"val_bpb": 0.1 + 0.2})
    story.evaluate(3, Status.OOM)
    story.say(
        Fired(
            rule="crash_rate",
            generation=0,
            decision="pause",
            observed=0.5,
            limit=0.1,
            facts={"failed": 2, "spared": 0},
        ),
        Overridden(rule="crash_rate", generation=0, reason="the region is bad"),
    )
    story.tell()
    story.score(0.75, 0.5, 0.25, 1.0)
    story.tell((0.3, 0.7))
    story.say(Concluded())
    return [record.event for record in story.records]


@pytest.fixture
def story() -> Story:
    return Story(small_plan())


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path, SimulatedClock(1000.0))
