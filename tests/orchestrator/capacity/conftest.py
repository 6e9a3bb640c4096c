"""A simulated machine whose evaluations slow each other down as the law says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from budgets.events import Event, Status, Withdrawn
from budgets.state import RunState
from objectives import registry
from objectives.api import Context, Objective, ObjectiveError, ObjectiveSpec
from orchestrator.capacity.terms import Pacing
from orchestrator.capacity.usl import Law
from orchestrator.execution import child
from orchestrator.execution.evaluate import Attempt, Outcome, Slots
from orchestrator.running.session import Session
from tests.simulation.session import Person, SimulatedClock, SimulatedEngine


@dataclass
class _Flight:
    attempt: Attempt
    left: float  # of its work: 1 at its start
    began: float


@dataclass
class SharedMachine:
    """An executor: n in flight progress together at the law's X(n) evaluations an hour.

    `spread` is the relative standard deviation of how much work an evaluation is.
    """

    law: Law
    slots: Slots
    clock: SimulatedClock
    spread: float = 0.0
    most: int = 0  # that were ever in flight
    started: int = 0
    warnings: tuple[str, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()
    flights: list[_Flight] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flights = []

    def free(self, avoid: str = "") -> int:
        return self.slots.count - len(self.flights)

    def submit(self, attempt: Attempt) -> None:
        work = max(0.1, 1 + self.spread * float(self.rng.standard_normal()))
        self.flights.append(_Flight(attempt, work, self.clock.seconds))
        self.started += 1
        self.most = max(self.most, len(self.flights))

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        if not self.flights:
            return []
        rate = self.law.throughput(len(self.flights)) / len(self.flights) / 3600
        first = min(self.flights, key=lambda flight: flight.left)
        seconds = first.left / rate
        self.clock.advance_to(self.clock.seconds + seconds)
        for flight in self.flights:
            flight.left -= seconds * rate
        self.flights.remove(first)
        return [self._outcome(first)]

    def _outcome(self, flight: _Flight) -> Outcome:
        attempt = flight.attempt
        seconds = self.clock.seconds - flight.began
        context = Context(attempt.directory, "cpu", 1, lambda _: None)
        status, cause, measured = Status.OK, "", None
        try:
            found = registry.load(attempt.objective).evaluate(attempt.knobs, attempt.seed, context)
            measured = found.model_copy(update={"train_seconds": seconds})
        except ObjectiveError as error:
            status, cause = child.classify(error), child.in_one_line(error)
        return Outcome(
            attempt_id=attempt.attempt_id,
            status=status,
            cause=cause,
            seconds=seconds,
            cpu_seconds=1.0,
            measurement=measured,
        )


@dataclass
class World:
    """Sessions on such a machine, one after the other on the same clock."""

    root: Path
    law: Law
    slots: Slots
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    spread: float = 0.0
    said: list[str] = field(default_factory=list)
    machines: list[SharedMachine] = field(default_factory=list)

    def session(
        self,
        observe: Callable[[RunState, Event], None] = lambda *_: None,
        pacing: Pacing | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Session:
        return Session(
            self.root,
            SimulatedEngine(kind="inline", make=self._machine),
            observe=observe,
            say=say or self.said.append,
            clock=self.clock.clock,
            stop=Person(),
            pacing=pacing or Pacing(),
        )

    def _machine(self, slots: Slots) -> SharedMachine:
        self.machines.append(SharedMachine(self.law, slots, self.clock, self.spread))
        return self.machines[-1]


@pytest.fixture
def make_world(place: Path) -> Callable[..., World]:
    """`make_world(Law(...), devices=8, spread=0.0)`."""

    def make(law: Law, devices: int = 8, spread: float = 0.0, name: str = "world") -> World:
        slots = Slots(devices, "cpu", "simulated", 1)
        return World(place / name, law, slots, spread=spread)

    return make


@pytest.fixture
def sphere() -> Callable[..., Objective]:
    """A sphere of two dimensions with noise, and with more settings."""

    def load(**settings: Any) -> Objective:
        usual = {"dimension": 2, "noise": 0.01}
        return registry.load(ObjectiveSpec(name="sphere", settings={**usual, **settings}))

    return load
