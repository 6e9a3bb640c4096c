"""The executor that takes no real time: slots, durations, and what a machine in trouble does."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from budgets.events import Status
from budgets.terms import Limits
from objectives.api import ObjectiveSpec
from orchestrator.execution import processes
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.server import EngineError
from tests.simulation.clock import SimulatedClock
from tests.simulation.instant import InstantExecutor, Machine

CENTRE = {"x0": 0.0, "x1": 0.0}
OPTIMUM = {"x0": 0.5, "x1": -0.5}


def executor(machine: Machine, clock: SimulatedClock | None = None) -> InstantExecutor:
    return InstantExecutor(machine, clock or SimulatedClock(), np.random.default_rng(0))


def attempt(number: int, knobs: Mapping[str, float] = CENTRE, **settings: float) -> Attempt:
    return Attempt(
        attempt_id=f"attempt-{number}",
        directory=Path("/nowhere"),
        objective=ObjectiveSpec(name="sphere", settings={"dimension": 2} | settings),
        knobs=dict(knobs),
        seed=number,
        limits=Limits(wall_seconds=600.0),
        owner=processes.this_owner(),
    )


def outcomes(machine: Machine, count: int, **settings: float) -> list[Outcome]:
    """Of so many evaluations, one after another."""
    running, found = executor(machine), []
    for number in range(count):
        running.submit(attempt(number, CENTRE, **settings))
        found += running.wait(0.5)
    return found


def test_what_ends_first_is_heard_first_and_the_clock_stands_there() -> None:
    clock = SimulatedClock()
    running = executor(Machine(spread=0.0), clock)
    running.submit(attempt(0, effort=2.0))
    running.submit(attempt(1))
    assert running.free() == 0
    with pytest.raises(EngineError, match="no slot is free"):
        running.submit(attempt(2))
    assert [o.attempt_id for o in running.wait(0.5)] == ["attempt-1"]
    assert clock.seconds == pytest.approx(20.1)
    assert [o.attempt_id for o in running.wait(0.5)] == ["attempt-0"]
    assert clock.seconds == pytest.approx(40.1)
    assert running.wait(0.5) == []


def test_an_evaluation_has_its_score_and_its_times() -> None:
    (found,) = outcomes(Machine(spread=0.0), 1)
    assert found.status is Status.OK
    assert found.measurement is not None
    assert found.measurement.score == 1.0
    assert (found.cpu_seconds, found.measurement.train_seconds) == (20.0, 20.0)


def test_a_candidate_that_diverges_is_nan() -> None:
    running = executor(Machine())
    running.submit(attempt(0, OPTIMUM, nan_radius=0.5))
    (found,) = running.wait(0.5)
    assert (found.status, found.measurement) == (Status.NAN, None)
    assert "the optimum is" in found.cause


def test_a_slow_machine_takes_longer_from_some_evaluation_on() -> None:
    machine = Machine(spread=0.0, trouble="slow", after=(3, 4))
    assert [o.cpu_seconds for o in outcomes(machine, 5)] == [20.0, 20.0, 20.0, 50.0, 50.0]


def test_a_failing_device_loses_what_it_is_given_and_others_do_not() -> None:
    running = executor(Machine(trouble="failing", after=(2, 3)))
    ends: Counter[tuple[str, Status]] = Counter()
    for number in range(10):
        while running.free():
            running.submit(attempt(number))
        ends.update((o.device, o.status) for o in running.wait(0.5))
    assert ends["sim-0", Status.LOST] > 0
    assert ends["sim-0", Status.OK] == 1
    assert ends["sim-1", Status.LOST] == 0


def test_a_calm_machine_meets_less_of_the_noise() -> None:
    noisy, calm = (
        [o.measurement.score - 1 for o in outcomes(machine, 3, noise=0.01) if o.measurement]
        for machine in (Machine(), Machine(calm=0.5))
    )
    assert calm == pytest.approx([score / 2 for score in noisy])
