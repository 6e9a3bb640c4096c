"""Attempts, misbehaving programs, and helpers that wait for other processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from budgets.events import Owner
from budgets.plan import Limits
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.execution import api, processes
from orchestrator.execution.api import Attempt, Executor, Outcome
from orchestrator.execution.devices import make_devices
from orchestrator.execution.local import LocalExecutor

HERE = Path(__file__).parent
NASTY = ("nasty",)
ONE, TWO = make_devices(1), make_devices(2)


@pytest.fixture
def dead() -> Owner:
    """A process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ticks = processes.start_ticks(process.pid)
    process.communicate()
    return processes.this_owner().model_copy(update={"pid": process.pid, "start_ticks": ticks})


@pytest.fixture(autouse=True, scope="session")
def _importable() -> Iterator[None]:
    """Processes started by these tests find the package and `nasty`."""
    with pytest.MonkeyPatch.context() as patch:
        known = os.environ.get("PYTHONPATH")
        paths = [str(HERE), str(HERE.parents[2]), *([known] if known else [])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield


@pytest.fixture
def make_attempt(tmp_path: Path) -> Callable[..., Attempt]:
    """Attempts of `sphere` at its baseline, or of what `nasty` can `do`."""
    numbers = count()
    sphere = registry.load(ObjectiveSpec(name="sphere"))
    knobs = {knob.name: knob.baseline for knob in sphere.space.knobs}

    def make(do: str | None = None, *, owner: Owner | None = None, **settings: Any) -> Attempt:
        limits = {name: settings.pop(name) for name in Limits.model_fields if name in settings}
        directory = tmp_path / f"attempt-{next(numbers)}"
        directory.mkdir()
        spec = ObjectiveSpec(name="nasty", settings={"do": do, **settings}) if do else sphere.spec
        attempt = Attempt(
            attempt_id=f"{tmp_path.name}-{directory.name}",
            directory=directory,
            objective=spec,
            knobs=knobs,
            seed=7,
            limits=Limits(**{"wall_seconds": 60.0, "grace_seconds": 0.3, **limits}),
            owner=owner or processes.this_owner(),
        )
        api.write_model(directory, attempt)
        return attempt

    return make


def run_one(attempt: Attempt) -> Outcome:
    """Run an attempt of `nasty` in an executor of its own."""
    with LocalExecutor(TWO, NASTY) as executor:
        executor.submit(attempt)
        return the_one(executor.wait(60.0))


def the_one(outcomes: list[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def wait_until(condition: Callable[[], object], within_seconds: float = 20.0) -> None:
    """Poll until the condition holds; fail after the deadline."""
    deadline = time.monotonic() + within_seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def noted(attempt: Attempt) -> list[int]:
    """The pids that `nasty` has written."""
    path = attempt.directory / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(attempt: Attempt) -> list[int]:
    """Those that still run."""
    return [pid for pid in noted(attempt) if processes.start_ticks(pid) is not None]


def assemble(attempt: Attempt, count: int, executor: Executor | None = None) -> None:
    """Wait for that many pids; the executor renews its leases meanwhile."""

    def are_there() -> bool:
        assert executor is None or executor.wait(0.05) == []
        return len(noted(attempt)) == count

    wait_until(are_there, 60.0)


def supervisor_of(attempt: Attempt) -> int:
    started = api.read(api.Started, attempt.directory)
    assert started is not None
    return started.pid


def above(attempt: Attempt) -> list[psutil.Process]:
    """What is above its supervisor: on Ray the fork server, the agent, the raylet."""
    return psutil.Process(supervisor_of(attempt)).parents()


def vanish(attempt: Attempt, within_seconds: float) -> None:
    """Wait until neither they nor the supervisor are alive."""
    pids = [*noted(attempt), supervisor_of(attempt)]
    wait_until(lambda: not any(map(processes.start_ticks, pids)), within_seconds)
