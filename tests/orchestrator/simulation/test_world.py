"""Hundreds of stories by their seeds; and that a bug, planted, does not go unnoticed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgets.chain import LEDGER
from budgets.events import Status
from budgets.state import RunState
from orchestrator import run as run_module
from orchestrator.execution.evaluate import Attempt, Outcome
from orchestrator.run import Run
from orchestrator.simulation.disk import FaultyDisk
from orchestrator.simulation.disturbance import Disturbance
from orchestrator.simulation.executor import SimulatedExecutor
from orchestrator.simulation.fates import CALM, STORM, Weather
from orchestrator.simulation.scenarios import SCENARIOS
from orchestrator.simulation.world import Story, StoryError, World, tell

STORIES, BLOCK = 300, 25
"""How many seeds every run of the tests tells, and in one test."""


@pytest.fixture
def world(place: Path) -> World:
    return World(place, SCENARIOS)


@pytest.mark.parametrize("first", range(0, STORIES, BLOCK))
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

    for seed in range(3, 3 + len(SCENARIOS)):
        assert ledger(seed) == ledger(seed)


def test_the_stories_together_meet_every_kind_of_trouble(world: World) -> None:
    met = {name for seed in range(40) for name, count in tell(world, seed).faults.items() if count}
    expected = {"killed", "killed in a call", "power cut", "power cut in a call", "disk error"}
    expected |= {"disk full", "interrupted", "lost", "unborn", "silent", "duplicate", "delayed"}
    expected |= {"error", "nan", "oom", "stall", "hang", "paused: crash_rate", "paused: storage"}
    assert expected <= met


def undisturbed(weather: Weather = CALM) -> Callable[[np.random.Generator], Disturbance]:
    return lambda rng: Disturbance(weather=weather)
