"""Back-pressure in whole runs: its limits, its file, and the points that it must not change."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Event, Settled
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.capacity import SIGNALS, Law
from orchestrator.matrix.carry_out import calibrate, carry_out_search
from orchestrator.records.runs import Result
from tests.asking import config_for

if TYPE_CHECKING:
    from tests.orchestrator.capacity.conftest import World

MakeWorld = Callable[..., "World"]
LAW = Law(3600.0, 0.05, 0.05)  # N* = 4.4


class KilledError(Exception):
    """Stands for a dead process."""


def search(world: "World", objective: Objective, **more: Any) -> Result:
    size = {"population": 16, "max_evals": 96, "assumed_seconds": 30.0}
    request = config_for("phase1", "target", objective, **size)
    with world.session(**{"backpressure": True, **more}) as session:
        return carry_out_search(session, request, world.slots)


def signals(directory: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (directory / SIGNALS).read_bytes().splitlines()]


def test_a_run_finds_its_number_and_keeps_its_points_through_a_kill(
    make_world: MakeWorld, sphere: Objective, found: Callable[[Path], dict[str, Any]]
) -> None:
    plain, whole = make_world(LAW, name="plain"), make_world(LAW, name="whole")
    killed, settled, in_flight = make_world(LAW, name="killed"), list[Event](), list[int]()

    def watch(state: RunState, event: Event) -> None:
        in_flight.append(len(state.accounts.holds))

    def die(state: RunState, event: Event) -> None:
        settled.extend([event] * isinstance(event, Settled))
        if len(settled) == 40:
            raise KilledError

    first, expected = (
        search(plain, sphere, backpressure=False),
        search(whole, sphere, observe=watch),
    )
    with pytest.raises(KilledError):
        search(killed, sphere, observe=die)
    result = search(killed, sphere)

    assert found(result.directory) == found(expected.directory) == found(first.directory)
    assert not (first.directory / SIGNALS).exists()
    rows = signals(expected.directory)
    assert max(in_flight[:8]) == 2
    assert max(in_flight) <= max(row["bp_allowed"] for row in rows)
    assert {row["bp_allowed"] for row in rows[len(rows) // 2 :]} <= {3, 4, 5}
    assert rows[0]["workers"] == 2
    assert rows[0]["bp_throughput"] == pytest.approx(2 * 3600 / 1.15, rel=1e-2)
    assert rows[-1]["bp_p_star"] == pytest.approx(4.36, rel=0.2)
    assert {row["bp_action"] for row in rows} <= {"increase", "hold", "throttle"}
    changes = [row for row in rows if row["bp_action"] != "hold"]
    assert len([line for line in whole.said if "Back-pressure" in line]) == len(changes)


def test_a_calibration_is_timed_with_every_device(make_world: MakeWorld, sphere: Objective) -> None:
    world = make_world(LAW)
    with world.session(backpressure=True) as session:
        calibrate(session, config_for("phase1", "min", sphere), world.slots)
    assert world.machines[0].most == 8
