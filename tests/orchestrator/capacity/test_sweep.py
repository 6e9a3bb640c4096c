"""Throughput at 1, 2, 4 ... workers: measured in ledgers, paid once, taken for no calibration."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Event, Settled
from budgets.ledger import LEDGER, read
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.capacity import Law
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.workers import (
    as_document,
    evaluations_at,
    sweep,
    throughput,
    worker_counts,
)
from orchestrator.plan.times import find_calibration
from orchestrator.records.runs import Result
from tests.asking import config_for
from tests.ledgers import cut, state_of

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.capacity.conftest import World

MakeWorld = Callable[..., "World"]
LAW = Law(3600.0, 0.05, 0.02)  # N* = 6.9
COUNTS = (1, 2, 4, 8)


class KilledError(Exception):
    """Stands for a dead process."""


def of(sphere: Objective) -> Config:
    return config_for("phase1", "min", sphere)


def measure(
    world: "World", sphere: Objective, counts: tuple[int, ...] = COUNTS, **options: Any
) -> list[Result]:
    with world.session(**options) as session:
        return list(sweep(session, of(sphere), world.slots, counts))


def document(results: list[Result]) -> Any:
    return as_document([throughput(result.state) for result in results], 8)


@pytest.mark.parametrize("at", [None, 9])
def test_a_sweep_finds_the_law_though_it_was_killed_and_pays_once(
    make_world: MakeWorld, sphere: Objective, at: int | None
) -> None:
    world, settled, most = make_world(LAW), list[Event](), dict[str, int]()

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
    assert len(final) == sum(evaluations_at(workers) for workers in COUNTS)
    assert list(most.values()) == list(COUNTS)
    found = document(results)
    if at is None:  # with interruptions there are fewer that count
        assert found["law"]["lambda"] == pytest.approx(3600, rel=0.01)
        assert found["law"]["kappa"] == pytest.approx(0.02, rel=0.1)
        assert found["recommended_workers"] <= 7
    for workers in COUNTS:
        devices = devices_of(Slots(workers, "cpu", "simulated", 1))
        assert find_calibration(world.root, sphere, devices) is None

    again = measure(world, sphere)
    assert [result.state.head for result in again] == [result.state.head for result in results]


def test_a_document_says_where_more_do_less(make_world: MakeWorld, sphere: Objective) -> None:
    world = make_world(Law(3600.0, 0.1, 0.3))
    found = document(measure(world, sphere))
    assert [level["regime"] for level in found["levels"]][2:] == 2 * ["retrograde"]
    assert orjson.loads(orjson.dumps(found)) == found
    slower = (1, 1.7, 4.9, 18.5)
    rates = [level["evaluations_per_hour"] for level in found["levels"]]
    assert rates == pytest.approx([3600 * n / x for n, x in zip(COUNTS, slower, strict=True)], 0.02)


def test_a_level_measured_on_failures_alone_is_refused(
    make_world: MakeWorld, sphere: Objective
) -> None:
    world = make_world(LAW)
    [result] = measure(world, sphere, (1,))
    cut(result.directory, 4, keep_head=True)
    with pytest.raises(ValueError, match="measured no throughput"):
        throughput(state_of(result.directory))


def test_levels_are_powers_of_two_and_all_devices_in_whole_rounds() -> None:
    assert [worker_counts(n) for n in (1, 2, 6)] == [(1,), (1, 2), (1, 2, 4, 6)]
    counts = [evaluations_at(workers) for workers in (1, 2, 3, 16)]
    assert counts == [4, 4, 6, 32]


def test_the_command_recommends_no_more_workers_than_there_are(command: "Command") -> None:
    words = ("--objective", "sphere", "--executor", "inline", "--workers", "1")
    answer = command("check", "workers", *words, "--set", "seconds=0.02", "--json")
    found = orjson.loads(answer.out)
    assert found["recommended_workers"] == 1
    assert [level["evaluations"] for level in found["levels"]] == [4]
