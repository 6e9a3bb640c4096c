"""`check workers`: throughput at 1, 2, 4 ... workers, paid once, taken for no calibration."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Event
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.capacity import Law
from orchestrator.execution.devices import make_devices
from orchestrator.matrix.carry_out import carry_out
from orchestrator.matrix.check_commands import sweep, throughputs
from orchestrator.plan.forecast import find_calibration
from orchestrator.records.runs import Result
from tests.asking import config_for

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.capacity.conftest import World

MakeWorld = Callable[..., "World"]
COUNTS = (1, 2, 4, 8)


def measure(world: "World", sphere: Objective, **options: Any) -> list[Result]:
    with world.session(**options) as session:
        wanted = sweep(config_for("phase1", "min", sphere), world.slots)
        return [carry_out(matrix, session, slots) for matrix, slots in wanted]


def test_a_sweep_finds_the_law_and_pays_once(make_world: MakeWorld, sphere: Objective) -> None:
    world, most = make_world(Law(3600.0, 0.05, 0.02)), dict[str, int]()

    def watch(state: RunState, _: Event) -> None:
        name, count = state.plan.run_id, len(state.accounts.holds)
        most[name] = max(most.get(name, 0), count)

    results = measure(world, sphere, observe=watch)
    assert list(most.values()) == list(COUNTS)
    document, _ = throughputs([result.state for result in results], 8)
    levels = [(level["workers"], level["evaluations"]) for level in document["levels"]]
    assert levels == [(1, 4), (2, 4), (4, 8), (8, 16)]
    assert document["law"]["lambda"] == pytest.approx(3600, rel=0.01)
    assert document["law"]["kappa"] == pytest.approx(0.02, rel=0.1)
    assert document["optimum"] == pytest.approx(6.9, rel=0.05)
    assert document["recommended_workers"] <= 7
    for workers in COUNTS:
        devices = make_devices(workers, "cpu", "simulated")
        assert find_calibration(world.root, sphere, devices) is None
    again = measure(world, sphere)
    assert [result.state.head for result in again] == [result.state.head for result in results]


def test_the_command_recommends_no_more_workers_than_there_are(command: "Command") -> None:
    words = ("--objective", "sphere", "--executor", "inline", "--workers", "1")
    answer = command("check", "workers", *words, "--set", "seconds=0.02", "--json")
    document = orjson.loads(answer.out)
    assert document["recommended_workers"] == 1
    assert [level["evaluations"] for level in document["levels"]] == [4]
