"""Back-pressure in whole runs: what it limits, what it tells, and what it must not change."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Event, Settled
from budgets.fold import apply, begin
from budgets.ledger.chain import LEDGER, read
from budgets.state import RunState
from objectives.api import Objective
from orchestrator.capacity.backpressure import SIGNALS
from orchestrator.capacity.gauge import Gauge
from orchestrator.capacity.terms import Backpressure, Pacing
from orchestrator.capacity.usl import Law
from orchestrator.capacity.windows import Observation
from orchestrator.planning.request import Request
from orchestrator.records.recorded import Result
from orchestrator.running.calibrating import Calibrating
from orchestrator.running.searching import Searching
from orchestrator.verification.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.capacity.conftest import World

MakeWorld = Callable[..., "World"]
Sphere = Callable[..., Objective]
LAW = Law(3600.0, 0.05, 0.05)  # N* = 4.4
ON = Pacing(backpressure=Backpressure(enabled=True))


class KilledError(Exception):
    """Stands for a dead process."""


def search(world: "World", objective: Objective, pacing: Pacing = ON, **more: Any) -> Result:
    request = Request("phase1", "target", objective, population=16, max_evals=96)
    with world.session(pacing=pacing, **more) as session:
        return Searching(request, world.slots, assumed_seconds=30.0).carry_out(session)


def signals(directory: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (directory / SIGNALS).read_bytes().splitlines()]


def observed(directory: Path) -> list[Observation]:
    records = read(directory / LEDGER).records
    gauge, state = Gauge(), begin(records[0])
    found = []
    for record in records[1:]:
        apply(state, record)
        found.append(gauge.follow(state, record.event))
    return [one for one in found if one is not None]


def test_a_run_begins_with_two_and_keeps_near_the_optimum(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world, in_flight = make_world(LAW), list[int]()

    def watch(state: RunState, event: Event) -> None:
        in_flight.append(len(state.accounts.holds))

    result = search(world, sphere(), observe=watch)
    first = [s["bp_allowed"] for s in signals(result.directory)]
    assert max(in_flight[:8]) == 2
    assert max(in_flight) == max(2, *first[:-1])
    assert set(first[len(first) // 2 :]) <= {3, 4, 5}


def test_points_and_scores_are_those_of_a_run_without_it(
    make_world: MakeWorld, sphere: Sphere, found: Callable[[Path], dict[str, Any]]
) -> None:
    plain, paced = make_world(LAW, name="plain"), make_world(LAW, name="paced")
    first = search(plain, sphere(), Pacing())
    second = search(paced, sphere())
    assert found(second.directory) == found(first.directory)
    assert plain.machines[-1].most > paced.machines[-1].most
    assert not (first.directory / SIGNALS).exists()


@pytest.mark.parametrize("at", [3, 20, 50])
def test_a_killed_run_ends_as_if_nothing_had_happened_and_keeps_its_number(
    make_world: MakeWorld, sphere: Sphere, found: Callable[[Path], dict[str, Any]], at: int
) -> None:
    whole, world = make_world(LAW, name="whole"), make_world(LAW, name="killed")
    settled = Counter[str]()

    def die(state: RunState, event: Event) -> None:
        settled["all"] += isinstance(event, Settled)
        if settled["all"] == at:
            raise KilledError

    expected = search(whole, sphere())
    with pytest.raises(KilledError):
        search(world, sphere(), observe=die)
    before = signals(expected.directory)[at - 1]["bp_allowed"]
    result = search(world, sphere())

    assert found(result.directory) == found(expected.directory)
    assert verify(result.directory).divergence is None
    said = [line for line in world.said if "to begin with" in line]
    assert said[-1] == f"Back-pressure: {before} at once to begin with."


def test_the_file_has_a_line_a_settlement_and_can_be_written_again(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(LAW)
    result = search(world, sphere())
    lines = signals(result.directory)
    records = read(result.directory / LEDGER).records
    assert len(lines) == sum(isinstance(record.event, Settled) for record in records)
    assert {"bp_action", "bp_regime", "bp_p_star", "bp_throughput", "bp_allowed"} <= set(lines[0])
    assert lines[0]["bp_regime"] is None
    assert lines[-1]["bp_p_star"] == pytest.approx(4.36, rel=0.2)
    assert Counter(line["bp_action"] for line in lines)["increase"] >= 1


def test_a_torn_line_is_mended_by_the_next_session(make_world: MakeWorld, sphere: Sphere) -> None:
    world, settled = make_world(LAW), Counter[str]()

    def die(state: RunState, event: Event) -> None:
        settled["all"] += isinstance(event, Settled)
        if settled["all"] == 10:
            raise KilledError

    with pytest.raises(KilledError):
        search(world, sphere(), observe=die)
    [path] = world.root.glob(f"*/*/{SIGNALS}")
    path.write_bytes(path.read_bytes()[:-5])
    result = search(world, sphere())
    records = read(result.directory / LEDGER).records
    settlements = sum(isinstance(record.event, Settled) for record in records)
    assert len(signals(result.directory)) == settlements


def test_a_change_is_said_and_a_hold_is_not(make_world: MakeWorld, sphere: Sphere) -> None:
    world = make_world(LAW)
    result = search(world, sphere())
    changes = [s for s in signals(result.directory) if s["bp_action"] != "hold"]
    said = [line for line in world.said if line.startswith("Back-pressure:")]
    assert len(said) == 1 + len(changes)
    assert said[1].startswith("Back-pressure: increase to 4 at once (linear")


def test_a_calibration_is_timed_with_every_device(make_world: MakeWorld, sphere: Sphere) -> None:
    world = make_world(LAW)
    with world.session(pacing=ON) as session:
        Calibrating(sphere(), world.slots).carry_out(session)
    assert world.machines[0].most == 8


def test_never_more_are_in_flight_than_max_workers(make_world: MakeWorld, sphere: Sphere) -> None:
    world = make_world(Law(3600, 0, 0))
    terms = Backpressure(enabled=True, min_workers=3, max_workers=3)
    search(world, sphere(), Pacing(backpressure=terms))
    assert world.machines[0].most == 3


def test_the_gauge_knows_how_many_ran_beside_an_evaluation(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(Law(3600, 0, 0), devices=3)
    request = Request("phase1", "min", sphere(), population=4, max_evals=8)
    with world.session() as session:
        result = Searching(request, world.slots, assumed_seconds=30.0).carry_out(session)
    seen = observed(result.directory)
    assert [round(one.workers, 2) for one in seen] == [3, 3, 3, 1, 3, 3, 3, 1]
    assert [round(one.seconds, 2) for one in seen] == [1.0] * 8


def test_the_flag_turns_it_on(command: "Command", tmp_path: Path) -> None:
    options = ("--objective", "sphere", "--executor", "inline", "--workers", "1", "--tier", "min")
    answer = command(
        "phase1", *options, "--set", "backpressure.enabled=true", "--assume-eval-seconds", "1"
    )
    assert answer.code == 0
    assert "Back-pressure: 1 at once to begin with." in answer.out
    assert len(signals(tmp_path / "artifacts/cmaes/phase1/min-sphere-s1")) == 16
