"""A simulated machine whose evaluations slow each other down as the law says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Event
from budgets.plan import Devices
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.capacity import Law
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.devices import make_devices
from orchestrator.execution.inline import InlineExecutor
from orchestrator.run.loop import Stop
from orchestrator.run.session import Session
from tests.simulation.session import SimulatedClock, SimulatedEngine


@dataclass
class Flight:
    """An evaluation on its way."""

    attempt: Attempt
    began: float
    left: float = 1.0  # of its work


class SharedMachine(InlineExecutor):
    """n in flight progress together at the law's X(n) evaluations an hour."""

    def __init__(self, slots: Devices, law: Law, clock: SimulatedClock) -> None:
        super().__init__(slots)
        self.law, self.clock, self.most = law, clock, 0
        self.flights: list[Flight] = []

    def submit(self, attempt: Attempt) -> None:
        super().submit(attempt)
        self.flights.append(Flight(attempt, self.clock.seconds))
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
        self._queue.remove(first.attempt)
        took = self.clock.seconds - first.began
        return [self._evaluate(first.attempt).model_copy(update={"seconds": took})]


@dataclass
class World:
    """Sessions on such a machine, one after the other on the same clock."""

    root: Path
    law: Law
    slots: Devices
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    said: list[str] = field(default_factory=list)
    machines: list[SharedMachine] = field(default_factory=list)

    def session(
        self, observe: Callable[[RunState, Event], None] = lambda *_: None, **options: Any
    ) -> Session:
        wanted = {"say": self.said.append, **options}
        engine = SimulatedEngine(kind="inline", make=self._machine)
        clock, stop = self.clock.clock, Stop()
        return Session(self.root, engine, observe=observe, clock=clock, stop=stop, **wanted)

    def _machine(self, slots: Devices) -> SharedMachine:
        self.machines.append(SharedMachine(slots, self.law, self.clock))
        return self.machines[-1]


@pytest.fixture
def make_world(place: Path) -> Callable[..., World]:
    """`make_world(Law(...), devices=8)`."""

    def make(law: Law, devices: int = 8, name: str = "world") -> World:
        return World(place / name, law, make_devices(devices, "cpu", "simulated"))

    return make


@pytest.fixture
def sphere() -> Objective:
    """A sphere of two dimensions with noise."""
    settings = {"dimension": 2, "noise": 0.01}
    return registry.load(ObjectiveSpec(name="sphere", settings=settings))
