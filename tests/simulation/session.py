"""A session of the product in a simulated world: who interrupts it, what it runs on, its death."""

from collections.abc import Callable
from dataclasses import dataclass

from objectives.api import Objective
from orchestrator.execution.engine import Engine
from orchestrator.execution.evaluate import Executor, Slots


class Killed(BaseException):
    """The orchestrator's process is dead, from here on."""


@dataclass
class Person:
    """Who interrupts a session (`orchestrator.running.walk.Stop`)."""

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
