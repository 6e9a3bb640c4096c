"""Every scenario with every kind of disturbance; and planted bugs, which must be found."""

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from budgets import rules
from budgets.accounts import Accounts
from budgets.events import Settled, Status
from budgets.ledger import LEDGER, read
from budgets.state import ImpossibleEventError, RunState, fold
from orchestrator.execution import api as execution
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.run import loop as loop_of_run
from orchestrator.run.loop import judged as truly_judged
from orchestrator.run.loop import settled
from tests.simulation.devices import STORM, Device, FaultRates, SimulatedExecutor
from tests.simulation.disk import Fault, FaultyDisk
from tests.simulation.scenarios import KINDS, SCENARIOS, Disturbance, disturbed
from tests.simulation.world import SEEDS, SimulationError, World


@pytest.fixture(scope="module")
def references() -> dict[str, RunState]:
    """One per scenario, made when it is first needed."""
    return {}


@pytest.fixture
def world(place: Path, references: dict[str, RunState]) -> World:
    return World(place, references=references)


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in range(1, 5))]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbed_run_ends_like_an_undisturbed_one(world: World, kind: str, turn: int) -> None:
    first = turn * SEEDS + KINDS.index(kind) * len(SCENARIOS)
    met = set[str]()
    for seed in range(first, first + len(SCENARIOS)):
        met |= set(world.simulate(seed).counts)
    assert kind in met


def test_one_seed_is_one_run_byte_for_byte(world: World) -> None:
    """On one machine and in one directory: host, versions and some paths are in the ledger."""

    def ledger(seed: int) -> bytes:
        run = world.prepare(seed)
        run.run()
        return (run.judge.directory / LEDGER).read_bytes()

    for seed in range(0, SEEDS, 33):
        assert ledger(seed) == ledger(seed)


@pytest.mark.parametrize(
    ("each", "met"),
    [
        (Disturbance(faults=(Fault(10, "sync", errno.EIO),)), "storage error"),
        (Disturbance(rates=FaultRates({"unready": 0.5}), dies_at=20), "unready"),
    ],
)
def test_what_chance_seldom_does_is_done_in_each_session(
    world: World, each: Disturbance, met: str
) -> None:
    world.disturb = lambda _: each
    assert all(world.simulate(seed).counts[met] for seed in (0, 3))


def test_an_event_that_cannot_follow_is_not_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.prepare(0)

    def unreserved(*arguments: object, **named: object) -> Settled:
        return settled(*arguments, **named).model_copy(update={"attempt": 9})  # type: ignore[arg-type]

    monkeypatch.setattr(loop_of_run, "settled", unreserved)
    with pytest.raises(ImpossibleEventError, match="is not running"):
        run.run()
    assert fold(read(run.judge.directory / LEDGER)) == run.judge.state


def storm(rng: np.random.Generator) -> Disturbance:
    return disturbed(rng, "storm")


def deadly(rng: np.random.Generator) -> Disturbance:
    """A power cut at a random moment."""
    return Disturbance(dies_at=10 + int(rng.integers(40)), cuts_power=True)


def deadly_storm(rng: np.random.Generator) -> Disturbance:
    return Disturbance(rates=STORM, dies_at=10 + int(rng.integers(40)))


class Twice(SimulatedExecutor):
    """Starts every attempt on two devices at once, as Ray's own retries would."""

    def submit(self, attempt: Attempt) -> None:
        super().submit(attempt)
        self._machines.start(attempt, "another")


class Crowded(SimulatedExecutor):
    """Treats every device as free."""

    def _usable(self) -> list[Device]:
        return self._devices


class Unsynced(FaultyDisk):
    """Does not sync, but reports success."""

    def sync(self, handle: int) -> None:
        self._pages(handle)


class Nameless(FaultyDisk):
    """Does not sync directories."""

    def sync_directory(self, directory: Path) -> None:
        pass


def test_a_failing_run_names_its_seed_and_how_to_replay_it(world: World) -> None:
    world.make_executor = Twice
    with pytest.raises(SimulationError, match=r"seed 5 .*started twice\nReplay .* --first 5 "):
        world.simulate(5)


Bug = Callable[[World, pytest.MonkeyPatch], object]


def never_blamed(_: World, patch: pytest.MonkeyPatch) -> None:
    def judged(state: RunState, end: Settled) -> Settled:
        own = truly_judged(state, end)
        return own.model_copy(update={"retry": True}) if own.status is Status.ERROR else own

    patch.setattr(loop_of_run, "judged", judged)


def blamed_on_resume(world: World, patch: pytest.MonkeyPatch) -> None:
    def judged(state: RunState, end: Settled) -> Settled:
        return end if end.recovered else truly_judged(state, end)

    world.disturb = deadly_storm
    patch.setattr(loop_of_run, "judged", judged)


def continues_unready(_: World, patch: pytest.MonkeyPatch) -> None:
    def quiet(_: RunState) -> None:
        """Say nothing."""

    patch.setattr(rules, "setup_failed", quiet)


def loses_charges(_: World, patch: pytest.MonkeyPatch) -> None:
    def charged(*arguments: object, **named: object) -> Settled:
        event = settled(*arguments, **named)  # type: ignore[arg-type]
        return event.model_copy(update={"charged_ms": 0}) if event.status is Status.LOST else event

    patch.setattr(loop_of_run, "settled", charged)


def forgets_hours(world: World, patch: pytest.MonkeyPatch) -> None:
    world.scenarios = tuple(s for s in SCENARIOS if s.name == "wall-clock")
    patch.setattr(Accounts, "_committed_ms", lambda accounts, _=0: accounts.wall_ms)


def forgets_results(world: World, patch: pytest.MonkeyPatch) -> None:
    world.disturb = deadly

    def lost(attempt: Attempt, wait_seconds: float) -> Outcome:
        seconds = attempt.limits.reserve_ms / 1000
        return Outcome(attempt_id=attempt.attempt_id, status=Status.LOST, seconds=seconds)

    patch.setattr(execution, "recover", lost)


def executor(kind: type[SimulatedExecutor]) -> Bug:
    return lambda world, _: setattr(world, "make_executor", kind)


def disk(kind: type[FaultyDisk]) -> Bug:
    def plant(world: World, _: pytest.MonkeyPatch) -> None:
        world.make_disk, world.disturb = kind, deadly

    return plant


@pytest.mark.parametrize(
    ("plant", "seen"),
    [
        (executor(Crowded), "begins on a device that"),
        (disk(Unsynced), "acknowledged record|LedgerCorruptError"),
        (disk(Nameless), "acknowledged record"),
        (never_blamed, "is retried again"),
        (blamed_on_resume, "undisturbed|retry False instead of True"),
        (continues_unready, "although nothing can be evaluated"),
        (loses_charges, "charged_ms 0 instead of|0 ms are charged"),
        (forgets_hours, "may outlast --max-hours"),
        (forgets_results, "is lost although its result is there"),
    ],
)
def test_a_planted_bug_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch, plant: Bug, seen: str
) -> None:
    world.disturb = storm
    for seed in range(len(SCENARIOS)):  # makes the references first, without the bug
        world.prepare(seed)
    plant(world, monkeypatch)

    with pytest.raises(SimulationError, match=seen):
        any(world.simulate(seed) is None for seed in range(40))
