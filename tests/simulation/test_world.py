"""Hundreds of stories by their seeds; and that a bug, planted, does not go unnoticed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from budgets.accounts import Accounts
from budgets.events import Settled, Status
from budgets.ledger.chain import LEDGER
from budgets.rules import triggers
from budgets.rules.table import SETUP_FAILED, Reading
from budgets.state import RunState
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.execution.recovery import Unknown
from orchestrator.running import run as run_module
from orchestrator.running import tries
from orchestrator.running.run import Run
from orchestrator.running.settle import settled
from tests.simulation.disk import FaultyDisk
from tests.simulation.disturbance import KINDS, Disturbance, draw
from tests.simulation.executor import SimulatedExecutor
from tests.simulation.fates import STORM
from tests.simulation.machines import Slot
from tests.simulation.reference import Reference
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.world import StoryError, World, tell

STORIES, USUAL, BLOCK = 160, 32, 16
"""How many seeds all tests tell, every run of the tests tells, and one test."""


@pytest.fixture(scope="module")
def references() -> dict[str, Reference]:
    """Of each scenario one, made when it is first needed."""
    return {}


@pytest.fixture
def world(place: Path, references: dict[str, Reference]) -> World:
    return World(place, SCENARIOS, references=references)


@pytest.mark.parametrize(
    "first",
    [
        *range(0, USUAL, BLOCK),
        *(pytest.param(n, marks=pytest.mark.slow) for n in range(USUAL, STORIES, BLOCK)),
    ],
)
def test_whatever_happens_a_run_ends_as_if_nothing_had(world: World, first: int) -> None:
    for seed in range(first, first + BLOCK):
        tell(world, seed)


def test_one_seed_tells_one_story_byte_for_byte(world: World) -> None:
    """On one machine: the sessions' host, boot and versions are its own. In one place: so are the
    paths that some causes name."""

    def ledger(seed: int) -> bytes:
        story = world.story(seed)
        story.tell()
        return (story.judge.directory / LEDGER).read_bytes()

    for seed in (3, 4, 5, 6, 8):
        assert ledger(seed) == ledger(seed)


def test_every_kind_of_disturbance_is_drawn() -> None:
    assert {draw(np.random.default_rng(seed)).kind for seed in range(200)} == set(KINDS)


def test_storms_bring_every_kind_of_trouble(world: World) -> None:
    world.disturb = stormy
    met = {name for seed in range(18) for name, count in tell(world, seed).faults.items() if count}
    assert {"lost", "unborn", "silent", "duplicate", "delayed", "killed", "broken"} <= met
    assert {"error", "crash", "nan", "oom", "stall", "hang", "paused: crash_rate"} <= met
    assert {"unready", "paused: setup_failed"} <= met


def test_stories_are_told_of_every_second_try(world: World) -> None:
    world.disturb = stormy
    ways = {way for seed in range(20) for (_, way) in tell(world, seed).judge.again}
    assert ways == {"elsewhere", "lighter"}


def caught(world: World, seeds: int = 40) -> str:
    """What the first story that goes wrong is told to have done; empty if none does."""
    for seed in range(seeds):
        try:
            tell(world, seed)
        except StoryError as error:
            return str(error)
    return ""


def stormy(rng: np.random.Generator) -> Disturbance:
    """Bad weather, and nothing else."""
    return Disturbance(weather=STORM)


def deadly(rng: np.random.Generator) -> Disturbance:
    """The power is cut somewhere."""
    return Disturbance(dies_at=10 + int(rng.integers(40)), cuts_power=True)


def test_a_failing_story_names_its_seed_and_how_to_replay_it(world: World) -> None:
    def never(rng: np.random.Generator) -> Disturbance:
        raise ValueError("planted")

    tell(world, 5)  # makes the reference
    world.disturb = never
    with pytest.raises(StoryError, match=r"seed 5 .*: planted\nReplay .* --first 5 --seeds 1"):
        tell(world, 5)


class Twice(SimulatedExecutor):
    """Starts every attempt on two devices at once, as Ray's own retries would."""

    def submit(self, attempt: Attempt) -> None:
        super().submit(attempt)
        self._machines.journal.start(attempt, "another", self._machines.clock.seconds)


def test_an_executor_that_starts_an_evaluation_twice_is_caught(world: World) -> None:
    world.make_executor = Twice
    assert "is started twice" in caught(world)


class Crowded(SimulatedExecutor):
    """Takes every slot for free."""

    def _usable(self) -> list[Slot]:
        return self._slots


def test_an_executor_that_puts_two_attempts_on_a_device_is_caught(world: World) -> None:
    world.make_executor, world.disturb = Crowded, stormy
    assert "begins on a device that" in caught(world)


class Stubborn(SimulatedExecutor):
    """Tries again on whatever device it finds."""

    def free(self, avoid: str = "") -> int:
        return super().free()

    def submit(self, attempt: Attempt) -> None:
        super().submit(attempt.model_copy(update={"avoid": ""}))


def test_an_executor_that_tries_again_where_it_failed_is_caught(world: World) -> None:
    world.make_executor, world.disturb = Stubborn, stormy
    assert "is tried where it failed" in caught(world)


def test_a_walk_that_never_blames_a_candidate_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(state: RunState, end: Settled) -> Settled:
        own = tries.judged(state, end)
        return replace(own, again="elsewhere") if own.status is Status.ERROR else own

    monkeypatch.setattr(run_module, "judged", judged)
    assert "elsewhere for the 2. time" in caught(world)


def test_a_walk_that_goes_on_although_nothing_can_be_evaluated_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quiet(state: RunState) -> Reading:
        return SETUP_FAILED.reads(state.asked, 0, 0, "never mind", fires=False)

    monkeypatch.setattr(triggers, "setup_failed", quiet)
    world.disturb = stormy
    assert "is reserved although nothing can be evaluated" in caught(world)


def test_a_resume_that_blames_a_candidate_at_once_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(state: RunState, end: Settled) -> Settled:
        return end if end.recovered else tries.judged(state, end)

    def deadly_storm(rng: np.random.Generator) -> Disturbance:
        return Disturbance(weather=STORM, dies_at=10 + int(rng.integers(40)))

    monkeypatch.setattr(run_module, "judged", judged)
    world.disturb = deadly_storm
    found = caught(world)
    assert "undisturbed" in found or "again None instead of" in found


class Forgetful(FaultyDisk):
    """Says that it has synced, and has not."""

    def sync(self, handle: int) -> None:
        self._pages(handle)


def test_a_ledger_that_is_not_synced_is_caught(world: World) -> None:
    world.make_disk, world.disturb = Forgetful, deadly
    found = caught(world)
    assert "acknowledged record" in found or "RecordCorruptError" in found


class Nameless(FaultyDisk):
    """Syncs no names."""

    def sync_directory(self, directory: Path) -> None:
        pass


def test_a_ledger_whose_name_is_not_synced_is_caught(world: World) -> None:
    world.make_disk, world.disturb = Nameless, deadly
    assert "acknowledged record" in caught(world)


def test_a_walk_that_believes_a_late_result_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It settles the attempt that now runs in the place of the one that was given up."""
    take = Run.take

    def believe(run: Run, outcome: Outcome, *, may_be_cancelled: bool = False) -> None:
        for lost in run.given_up():
            if run._attempt_id(lost) == outcome.attempt_id:
                for attempt in run.state.open_tries():
                    again = attempt.reserved
                    if (again.candidate, again.seed) == (lost.candidate, lost.seed):
                        return run.record(settled(again, outcome))
        return take(run, outcome, may_be_cancelled=may_be_cancelled)

    monkeypatch.setattr(Run, "take", believe)
    world.disturb = stormy
    found = caught(world)
    assert "undisturbed" in found or "summary.json" in found  # by its score, or by its files


def test_accounts_that_forget_how_long_an_attempt_may_take_are_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its wall clock: the judge keeps its own books of it."""
    world.scenarios = tuple(s for s in SCENARIOS if s.name == "wall-clock")
    monkeypatch.setattr(Accounts, "committed_wall_ms", property(lambda accounts: accounts.wall_ms))
    assert "may outlast --max-hours" in caught(world)


def test_a_walk_that_charges_nothing_for_what_was_lost_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def charged(*arguments: object, **named: object) -> Settled:
        event = settled(*arguments, **named)  # type: ignore[arg-type]
        return replace(event, charged_ms=0) if event.status is Status.LOST else event

    monkeypatch.setattr(run_module, "settled", charged)
    world.disturb = stormy
    assert "0 ms are charged" in caught(world)


def test_a_resume_that_pays_again_for_a_result_on_disk_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "recover", lambda _, name, wait: Unknown(name, "never mind"))
    world.disturb = deadly
    assert "is given up although its result is there" in caught(world)
