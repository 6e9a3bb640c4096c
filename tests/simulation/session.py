"""A session of the product in a simulated world: its clock, its user, its engine."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from budgets.ledger import Clock
from budgets.plan import Devices
from objectives.api import Objective
from orchestrator.execution.api import Executor
from orchestrator.execution.devices import Engine

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The orchestrator's process dies here."""


@dataclass
class SimulatedClock:
    """Seconds since the start, which never decrease, and the error of the wall clock."""

    seconds: float = 0.0
    wall_offset_seconds: float = 0.0
    was_set_back: bool = False

    def advance_to(self, seconds: float) -> None:
        """Let time pass until then, if it is in the future."""
        self.seconds = max(self.seconds, seconds)

    def set_wall(self, by_seconds: float) -> None:
        """Change the wall clock."""
        self.wall_offset_seconds += by_seconds
        self.was_set_back |= by_seconds < 0

    @property
    def clock(self) -> Clock:
        """The clock as the product sees it."""
        return Clock(monotonic=lambda: self.seconds, now=self._now)

    def _now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds + self.wall_offset_seconds)


@dataclass(frozen=True)
class SimulatedEngine(Engine):
    """An engine with a simulated executor."""

    make: Callable[[Devices], Executor] | None = None

    def executor(self, slots: Devices, objective: Objective) -> Executor:
        assert self.make is not None
        return self.make(slots)
