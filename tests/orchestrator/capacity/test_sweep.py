"""Throughput at 1, 2, 4 ... workers: measured in ledgers, paid once, taken for no calibration."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Event, Reserved, Settled
from budgets.ledger.chain import LEDGER, read
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.capacity.least_squares import fit
from orchestrator.capacity.terms import Pacing
from orchestrator.capacity.usl import Law
from orchestrator.cli.sweep import sweep_of
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.planning.calibrations import find_calibration
from orchestrator.planning.configured import Conduct
from orchestrator.records.recorded import Result
from orchestrator.running.calibrating import Calibrating
from orchestrator.running.sweep import (
    Sweep,
    evaluations_at,
    swept,
    worker_counts,
)
from orchestrator.running.sweep_text import as_document, to_markdown
from orchestrator.verification.verify import verify
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.capacity.conftest import World

MakeWorld = Callable[..., "World"]
Sphere = Callable[..., Objective]
LAW = Law(3600.0, 0.05, 0.02)  # N* = 6.9
COUNTS = (1, 2, 4, 8)


class KilledError(Exception):
    """Stands for a dead process."""


def measure(world: "World", wanted: Sweep, **options: Any) -> list[Result]:
    with world.session(**options) as session:
        return list(wanted.carry_out(session))


def events(results: list[Result]) -> list[Event]:
    found = (read(result.directory / LEDGER).records for result in results)
    return [record.event for records in found for record in records]


def test_a_sweep_finds_the_law_of_the_machine(make_world: MakeWorld, sphere: Sphere) -> None:
    world = make_world(LAW)
    levels = [swept(r.directory) for r in measure(world, Sweep(sphere(), world.slots, COUNTS))]

    assert [level.workers for level in levels] == list(COUNTS)
    found = fit([level.level for level in levels])
    assert found.law is not None
    assert found.law.one == pytest.approx(3600, rel=0.01)
    assert found.law.contention == pytest.approx(0.05, abs=0.01)
    assert found.law.coherency == pytest.approx(0.02, rel=0.1)
    assert found.recommended(world.slots.count) <= 7
    assert [machine.most for machine in world.machines] == [8]


def test_no_level_has_more_in_flight_than_its_workers(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world, most = make_world(LAW), Counter[str]()

    def watch(state: RunState, event: Event) -> None:
        most[state.plan.run_id] = max(most[state.plan.run_id], len(state.accounts.holds))

    results = measure(world, Sweep(sphere(), world.slots, COUNTS), observe=watch)
    assert [most[r.state.plan.run_id] for r in results] == list(COUNTS)


def test_every_evaluation_of_a_sweep_is_reserved_and_settled_once(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(LAW)
    results = measure(world, Sweep(sphere(), world.slots, COUNTS))
    recorded = events(results)
    planned = sum(evaluations_at(workers) for workers in COUNTS)
    assert sum(isinstance(event, Reserved) for event in recorded) == planned
    assert sum(isinstance(event, Settled) for event in recorded) == planned
    assert world.machines[0].started == planned
    for result in results:
        assert verify(result.directory).divergence is None


def test_the_same_sweep_again_pays_nothing(make_world: MakeWorld, sphere: Sphere) -> None:
    world = make_world(LAW)
    first = measure(world, Sweep(sphere(), world.slots, COUNTS))
    again = measure(world, Sweep(sphere(), world.slots, COUNTS))
    assert [r.state.head for r in again] == [r.state.head for r in first]
    assert len(world.machines) == 1


@pytest.mark.parametrize("at", [1, 5, 9, 17])
def test_a_killed_sweep_is_taken_up_and_nothing_is_paid_twice(
    make_world: MakeWorld, sphere: Sphere, at: int
) -> None:
    world, heard = make_world(LAW), Counter[str]()

    def die(state: RunState, event: Event) -> None:
        heard["settled"] += isinstance(event, Settled)
        if heard["settled"] == at:
            raise KilledError

    wanted = Sweep(sphere(), world.slots, COUNTS)
    with pytest.raises(KilledError):
        measure(world, wanted, observe=die)
    results = measure(world, wanted)

    final = [event for event in events(results) if isinstance(event, Settled) and event.final]
    assert len(final) == sum(evaluations_at(workers) for workers in COUNTS)
    assert all(swept(r.directory).per_hour > 0 for r in results)


def test_the_time_between_two_processes_is_no_ones_throughput(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world, heard = make_world(Law(3600, 0, 0)), Counter[str]()

    def die(state: RunState, event: Event) -> None:
        heard["settled"] += isinstance(event, Settled)
        if heard["settled"] == 2:
            raise KilledError

    wanted = Sweep(sphere(), world.slots, (1,))
    with pytest.raises(KilledError):
        measure(world, wanted, observe=die)
    world.clock.advance_to(world.clock.seconds + 5000)
    [result] = measure(world, wanted)
    assert swept(result.directory).per_hour == pytest.approx(3600, rel=0.01)


def test_a_sweep_is_taken_for_no_calibration(make_world: MakeWorld, sphere: Sphere) -> None:
    world, objective = make_world(LAW), sphere()
    measure(world, Sweep(objective, world.slots, COUNTS, least=8))
    for workers in COUNTS:
        devices = devices_of(Slots(workers, "cpu", "simulated", 1))
        assert find_calibration(world.root, objective, devices) is None


def test_a_calibration_stays_what_it_was(make_world: MakeWorld, sphere: Sphere) -> None:
    world, objective = make_world(LAW), sphere()
    with world.session() as session:
        calibration = Calibrating(objective, world.slots).carry_out(session)
    measure(world, Sweep(objective, world.slots, COUNTS))
    found = find_calibration(world.root, objective, devices_of(world.slots))
    assert found is not None
    assert found.state.head == calibration.state.head


def test_a_reason_sweeps_again(make_world: MakeWorld, sphere: Sphere) -> None:
    world, objective = make_world(LAW), sphere()
    measure(world, Sweep(objective, world.slots, (1, 2)))
    world.law = Law(1800.0, 0.05, 0.02)
    world.clock.advance_to(world.clock.seconds + 60)
    again = measure(world, Sweep(objective, world.slots, (1, 2), reason="another driver"))

    assert again[0].state.planned.reasons == ("swept again: another driver",)
    assert swept(again[0].directory).per_hour == pytest.approx(1800, rel=0.01)


def test_a_retrograde_machine_is_said_to_be_retrograde(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(Law(3600.0, 0.1, 0.3))
    levels = [swept(r.directory) for r in measure(world, Sweep(sphere(), world.slots, COUNTS))]
    found = fit([level.level for level in levels])
    text = to_markdown("sphere", levels, found, 8)
    assert "Retrograde from 4 workers on" in text
    assert "`--workers 2`" in text or "`--workers 1`" in text
    assert as_document(levels, found, 8)["retrograde"] == [4, 8]


def test_the_table_has_a_row_a_level_and_efficiency_against_one_worker(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(Law(3600.0, 1.0, 0.0))
    levels = [swept(r.directory) for r in measure(world, Sweep(sphere(), world.slots, (1, 2)))]
    document = as_document(levels, fit([level.level for level in levels]), 8)
    assert [row["efficiency"] for row in document["levels"]] == pytest.approx([1, 0.5], rel=0.01)
    assert document["optimum"] is None
    assert not document["optimum_is_told"]
    assert document["recommended_workers"] == 1
    assert orjson.loads(orjson.dumps(document)) == document


def test_a_level_measured_on_failures_alone_is_refused(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(LAW)
    [result] = measure(world, Sweep(sphere(), world.slots, (1,)))
    cut(result.directory, 4, keep_head=True)
    with pytest.raises(ValueError, match="measured no throughput"):
        swept(result.directory)


@pytest.mark.parametrize(
    ("devices", "counts"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))]
)
def test_powers_of_two_and_all_devices_are_swept(devices: int, counts: tuple[int, ...]) -> None:
    assert worker_counts(devices) == counts


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 16])
def test_a_level_is_whole_rounds_two_at_least(workers: int) -> None:
    count = evaluations_at(workers)
    assert count % workers == 0
    assert count >= max(4, 2 * workers)


SWEEP = ("calibrate", "--sweep-workers", "--objective", "sphere", "--set", "seconds=0.02")


def test_the_command_prints_the_recommended_workers(command: "Command") -> None:
    options = ("--executor", "inline", "--workers", "1")
    answer = command(*SWEEP, *options)
    assert answer.code == 0
    assert "Recommended: --workers 1" in answer.out
    document = orjson.loads(command(*SWEEP, *options, "--json").out)
    assert document["recommended_workers"] == 1
    assert [level["evaluations"] for level in document["levels"]] == [4]


def test_worker_counts_without_a_sweep_are_refused(command: "Command") -> None:
    answer = command("calibrate", "--worker-counts", "1", "--objective", "sphere")
    assert answer.code == 2
    assert "--sweep-workers" in answer.err


def test_an_override_is_of_the_level_that_a_rule_holds_up(
    make_world: MakeWorld, sphere: Sphere
) -> None:
    world = make_world(LAW)
    failing = sphere(failure_rate=1.0)
    [first] = measure(world, Sweep(failing, world.slots, (1,)))
    assert first.ruling.decision == "pause"
    rules = tuple((t.rule, "let it fail") for t in first.ruling.triggers)
    again = measure(world, Sweep(failing, world.slots, (1,), overrides=rules))
    assert {o.rule for o in again[0].state.overridden} == {rule for rule, _ in rules}


def test_a_sweep_of_workers_and_of_memory_are_two_commands(command: "Command") -> None:
    answer = command(*SWEEP, "--micro-batches", "1,2")
    assert answer.code == 2
    assert "expected one, got both" in answer.err


def test_a_sweep_keeps_to_the_slots_that_it_shares() -> None:
    engine = Engine(kind="inline", device="cpu", workers=1)
    how = Conduct(Path(), engine, None, False, True, Pacing(max_concurrent=1))
    assert sweep_of(how, registry.load(ObjectiveSpec(name="sphere")), None, None).counts == (1,)


def test_unequal_evaluations_make_a_level_doubtful(make_world: MakeWorld, sphere: Sphere) -> None:
    world = make_world(LAW, spread=0.1)
    levels = [swept(r.directory) for r in measure(world, Sweep(sphere(), world.slots, (1, 2), 16))]
    assert all(0.01 < level.level.noise < 0.1 for level in levels)
