"""An executor whose evaluations take no real time: each is computed at once, and ends later.

For runs that count by the hundred. It writes no files, so nobody can take up a run that died.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from budgets.events import Status, Withdrawn
from objectives import registry
from objectives.api import Context, Measurement, ObjectiveError
from orchestrator.execution import child
from orchestrator.execution.evaluate import Attempt, Outcome, Slots
from orchestrator.execution.server import EngineError
from tests.simulation.clock import SimulatedClock

STARTUP_SECONDS = 0.1
LOST_SECONDS = 1.0  # until a failing device has lost what it was given


@dataclass(frozen=True)
class Machine:
    """Devices, how long an evaluation takes on them, and what becomes of them.

    In trouble they are from one of the evaluations between `after` on: `slow` takes all of them
    `slower` times as long, with `failing` the first device loses whatever it is given.
    """

    devices: int = 2
    seconds: float = 20.0  # of an evaluation as long as the search's
    spread: float = 0.05  # standard deviation of its logarithm
    trouble: Literal["none", "slow", "failing"] = "none"
    after: tuple[int, int] = (30, 100)
    slower: float = 2.5
    calm: float = 1.0  # of the objective's noise, what is met on it

    @property
    def slots(self) -> Slots:
        return Slots(self.devices, "cpu", "simulated", 1)


@dataclass
class _Flight:
    ends: float
    slot: str
    outcome: Outcome


class InstantExecutor:
    """`slots.count` devices of a machine. The contract is `Executor`'s."""

    def __init__(self, machine: Machine, clock: SimulatedClock, rng: np.random.Generator) -> None:
        self.slots = machine.slots
        self.warnings: tuple[str, ...] = ()
        self.withdrawn: tuple[Withdrawn, ...] = ()
        self._machine, self._clock, self._rng = machine, clock, rng
        self._troubled_after = int(rng.integers(*machine.after))
        self._begun = 0
        self._flights: list[_Flight] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flights = []

    def free(self, avoid: str = "") -> int:
        idle = self._idle()
        others = [slot for slot in idle if slot != avoid]
        if others or any(flight.slot != avoid for flight in self._flights):
            return len(others)
        return len(idle)

    def _idle(self) -> list[str]:
        busy = {flight.slot for flight in self._flights}
        names = (f"sim-{number}" for number in range(self.slots.count))
        return [name for name in names if name not in busy]

    def submit(self, attempt: Attempt) -> None:
        if not (idle := self._idle()):
            raise EngineError("no slot is free")
        others = [slot for slot in idle if slot != attempt.avoid]
        slot = (others or idle)[0]
        self._begun += 1
        outcome = self._outcome(attempt, slot)
        self._flights.append(_Flight(self._clock.seconds + outcome.seconds, slot, outcome))

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        if not self._flights:
            return []
        first = min(self._flights, key=lambda flight: flight.ends)
        self._clock.advance_to(first.ends)
        self._flights.remove(first)
        return [first.outcome]

    def _trouble(self) -> str:
        return self._machine.trouble if self._begun > self._troubled_after else "none"

    def _outcome(self, attempt: Attempt, device: str) -> Outcome:
        trouble = self._trouble()
        if trouble == "failing" and device == "sim-0":
            return Outcome(
                attempt_id=attempt.attempt_id,
                status=Status.LOST,
                cause=f"the node of {device} died",
                seconds=LOST_SECONDS,
                device=device,
            )
        seconds = self._seconds(attempt) * (self._machine.slower if trouble == "slow" else 1.0)
        status, cause, measurement = self._evaluated(attempt, seconds)
        return Outcome(
            attempt_id=attempt.attempt_id,
            status=status,
            cause=cause,
            seconds=STARTUP_SECONDS + seconds,
            startup_seconds=STARTUP_SECONDS,
            cpu_seconds=seconds,
            device=device,
            measurement=measurement,
        )

    def _seconds(self, attempt: Attempt) -> float:
        effort = float(attempt.objective.settings.get("effort", 1.0))
        drawn = float(np.exp(self._machine.spread * self._rng.standard_normal()))
        return self._machine.seconds * effort * drawn

    def _evaluated(
        self, attempt: Attempt, seconds: float
    ) -> tuple[Status, str, Measurement | None]:
        noise = ("noise", "seed_noise")
        settings = attempt.objective.settings
        calmed = {name: self._machine.calm * settings[name] for name in noise if name in settings}
        objective = registry.load(registry.varied(attempt.objective, calmed))
        context = Context(attempt.directory, "cpu", 1, lambda _: None)
        try:
            measured = objective.evaluate(attempt.knobs, attempt.seed, context)
        except ObjectiveError as error:
            return child.classify(error), child.in_one_line(error), None
        return Status.OK, "", measured.model_copy(update={"train_seconds": seconds})
