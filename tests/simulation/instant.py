"""An executor whose evaluations take no real time: each is computed at once, and ends later.

For hundreds of runs. It writes no files, so a run that died cannot be resumed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple, Self

import numpy as np

from budgets.events import Status
from budgets.plan import Devices
from objectives import registry
from objectives.api import Context, DivergedError, ObjectiveError
from orchestrator.execution import trainer
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.devices import make_devices
from tests.simulation.session import SimulatedClock

STARTUP_SECONDS = 0.1
TRAP_SD = 5.0
LOST_SECONDS = 1.0  # until a failing device loses an evaluation


@dataclass(frozen=True)
class Machine:
    """Devices, how long an evaluation takes on them, and their trouble.

    Trouble starts after a random number of evaluations in `after`: with `slow` all evaluations take
    `slower` times as long, with `failing` the first device loses all of its evaluations.
    """

    devices: int = 2
    seconds: float = 20.0  # of a full evaluation
    spread: float = 0.05  # standard deviation of its logarithm
    trouble: Literal["none", "slow", "failing"] = "none"
    after: tuple[int, int] = (30, 100)
    slower: float = 2.5
    noise_factor: float = 1.0  # on the objective's noise
    seed_noise: float = 0.0  # standard deviation of what a seed adds to all points alike
    traps: float = 0.0  # share of (seed, point) pairs that score 5 sd of the noise too low
    nan_radius: float = 0.0  # rms distance to the optimum below which all diverge

    @property
    def slots(self) -> Devices:
        return make_devices(self.devices, "cpu", "simulated")

    def misled(self, knobs: Mapping[str, float], seed: int, noise: float) -> float:
        """Return what is added to an evaluation's score. Raises DivergedError near the optimum."""
        away = (x / (-0.5 if i % 2 else 0.5) - 1.0 for i, x in enumerate(knobs.values()))
        if math.sqrt(math.fsum(z * z for z in away) / len(knobs)) < self.nan_radius:
            raise DivergedError("nearer to the optimum than nan_radius")
        is_trap = Random(f"{seed} {knobs}").random() < self.traps  # noqa: S311
        common = Random(seed).gauss(0.0, self.seed_noise)  # noqa: S311
        return common - (TRAP_SD * noise if is_trap else 0.0)


class _Running(NamedTuple):
    ends: float
    device: str
    outcome: Outcome


class InstantExecutor:
    """An `Executor` on `slots.count` devices of a machine."""

    def __init__(self, machine: Machine, clock: SimulatedClock, rng: np.random.Generator) -> None:
        self.slots = machine.slots
        self.warnings: tuple[str, ...] = ()
        self._machine, self._clock, self._rng = machine, clock, rng
        self._trouble_after = int(rng.integers(*machine.after))
        self._begun = 0
        self._running: list[_Running] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running = []

    def _idle(self) -> list[str]:
        busy = {one.device for one in self._running}
        return [name for n in range(self.slots.count) if (name := f"sim-{n}") not in busy]

    def free(self) -> int:
        return len(self._idle())

    def submit(self, attempt: Attempt) -> None:
        self._begun += 1
        outcome = self._outcome(attempt, self._idle()[0])
        ends = self._clock.seconds + outcome.seconds
        self._running.append(_Running(ends, outcome.device, outcome))

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        if not self._running:
            return []
        first = min(self._running, key=lambda one: one.ends)
        self._clock.advance_to(first.ends)
        self._running.remove(first)
        return [first.outcome]

    def _outcome(self, attempt: Attempt, device: str) -> Outcome:
        machine, name = self._machine, attempt.attempt_id
        trouble = machine.trouble if self._begun > self._trouble_after else "none"
        if trouble == "failing" and device == "sim-0":
            lost = {"cause": f"the node of {device} died", "seconds": LOST_SECONDS}
            return Outcome(attempt_id=name, status=Status.LOST, device=device, **lost)
        spec = attempt.objective
        seconds = machine.seconds * float(spec.settings.get("effort", 1.0))
        seconds *= float(np.exp(machine.spread * self._rng.standard_normal()))
        seconds *= machine.slower if trouble == "slow" else 1.0
        noise = machine.noise_factor * float(spec.settings.get("noise", 0.0))
        outcome = Outcome(
            attempt_id=name,
            status=Status.OK,
            seconds=STARTUP_SECONDS + seconds,
            startup_seconds=STARTUP_SECONDS,
            cpu_seconds=seconds,
            device=device,
        )
        context = Context(attempt.directory, "cpu", 1, lambda _: None)
        try:
            objective = registry.load(registry.varied(spec, {"noise": noise}))
            measured = objective.evaluate(attempt.knobs, attempt.seed, context)
            score = measured.score + machine.misled(attempt.knobs, attempt.seed, noise)
        except ObjectiveError as error:
            failed = {"status": trainer.classify(error), "cause": trainer.in_one_line(error)}
            return outcome.model_copy(update=failed)
        timed = measured.model_copy(update={"train_seconds": seconds, "score": score})
        return outcome.model_copy(update={"measurement": timed})
