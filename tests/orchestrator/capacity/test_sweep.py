"""`check workers`: throughput at 1, 2, 4 ... workers, paid once, taken for no calibration."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Event, Settled
from budgets.ledger import LEDGER, read
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.capacity import Law
from orchestrator.execution.engine import make_devices
from orchestrator.matrix.checks import sweep, throughputs
from orchestrator.plan.forecast import find_calibration
from orchestrator.records.runs import Result
from tests.asking import config_for

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.capacity.conftest import World

MakeWorld = Callable[..., "World"]
COUNTS = (1, 2, 4, 8)
SEEDS = {1: 4, 2: 4, 4: 8, 8: 16}


class KilledError(Exception):
    """Stands for a dead process."""


def measure(world: "World", sphere: Objective, **options: Any) -> list[Result]:
    with world.session(**options) as session:
        return list(sweep(session, config_for("phase1", "min", sphere), world.slots))


def found(results: list[Result]) -> dict[str, Any]:
    return throughputs([result.state for result in results], 8)


@pytest.mark.parametrize("at", [None, 9])
def test_a_sweep_finds_the_law_though_it_was_killed_and_pays_once(
    make_world: MakeWorld, sphere: Objective, at: int | None
) -> None:
    world, settled, most = make_world(Law(3600.0, 0.05, 0.02)), list[Event](), dict[str, int]()

    def watch(state: RunState, event: Event) -> None:
        count = len(state.accounts.holds)
        most[state.plan.run_id] = max(most.get(state.plan.run_id, 0), count)
        if isinstance(event, Settled):
            settled.append(event)
            if len(settled) == at:
                raise KilledError

    if at is not None:
        with pytest.raises(KilledError):
            measure(world, sphere, observe=watch)
        world.clock.advance_to(world.clock.seconds + 5000)  # nobody's throughput
    results = measure(world, sphere, observe=watch)
    events = [e.event for r in results for e in read(r.directory / LEDGER)]
    final = [event for event in events if isinstance(event, Settled) and event.final]
    assert len(final) == sum(SEEDS.values())
    assert list(most.values()) == list(COUNTS)
    document = found(results)
    assert [level["workers"] for level in document["levels"]] == list(COUNTS)
    if at is None:  # what was in flight at the kill ran for longer
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
