"""A session of the product in a simulated world: its clock, its user, its engine, its death."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from budgets.ledger import Clock
from objectives.api import Objective
from orchestrator.execution.api import Executor, Slots
from orchestrator.execution.engine import Engine

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The orchestrator's process is dead, from here on."""


@dataclass
class SimulatedClock:
    """Seconds since the beginning, which never run back; and by how many the wall clock is off."""

    seconds: float = 0.0
    wall_offset_seconds: float = 0.0
    was_set_back: bool = False

    def advance_to(self, seconds: float) -> None:
        """Let time pass until then; a moment that is over changes nothing."""
        self.seconds = max(self.seconds, seconds)

    def set_wall(self, by_seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.wall_offset_seconds += by_seconds
        self.was_set_back |= by_seconds < 0

    @property
    def clock(self) -> Clock:
        """As the product sees it."""
        return Clock(monotonic=lambda: self.seconds, now=self._now)

    def _now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds + self.wall_offset_seconds)


@dataclass
class Person:
    """Who interrupts a session (`orchestrator.run.loop.Stop`)."""

    requested: bool = False
    now: bool = False
    signum: int = 0

    def install(self) -> None:
        """Signals of this process are not for the simulation."""


@dataclass(frozen=True)
class SimulatedEngine(Engine):
    """An engine with one executor, a simulated one."""

    make: Callable[[Slots], Executor] | None = None

    def executor(self, slots: Slots, objective: Objective, name: str) -> Executor:
        assert self.make is not None
        return self.make(slots)
