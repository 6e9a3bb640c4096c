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
from orchestrator.execution.api import Attempt, Executor, Outcome, Slots
from orchestrator.execution.local import LocalExecutor

HERE = Path(__file__).parent
NASTY = "nasty:main"


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
def slots() -> Slots:
    return Slots(2, "cpu", "some processor", 1)


@pytest.fixture
def nasty() -> str:
    return NASTY


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
        return Attempt(
            attempt_id=f"{tmp_path.name}-{directory.name}",
            directory=directory,
            objective=spec,
            knobs=knobs,
            seed=7,
            limits=Limits(**{"wall_seconds": 60.0, "grace_seconds": 0.3, **limits}),
            owner=owner or processes.this_owner(),
        )

    return make


@pytest.fixture
def run(slots: Slots) -> Callable[[Attempt], Outcome]:
    """Runs one attempt of `nasty` in an executor of its own."""

    def run_one(attempt: Attempt) -> Outcome:
        with LocalExecutor(slots, entry=NASTY) as executor:
            executor.submit(attempt)
            return the_one(executor.wait(60.0))

    return run_one


def the_one(outcomes: list[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def wait_until(condition: Callable[[], object], within_seconds: float = 20.0) -> float:
    """Poll until the condition holds; return the seconds it took, fail after the deadline."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_seconds, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.fixture
def eventually() -> Callable[..., float]:
    return wait_until


class Family:
    """The processes whose pids `nasty` has written, and whether they still run."""

    def noted(self, attempt: Attempt) -> list[int]:
        path = attempt.directory / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def alive(self, attempt: Attempt) -> list[int]:
        """Those that still run."""
        return [pid for pid in self.noted(attempt) if processes.start_ticks(pid) is not None]

    def assemble(self, attempt: Attempt, count: int, executor: Executor | None = None) -> None:
        """Wait for that many pids; the executor renews its leases meanwhile."""

        def are_there() -> bool:
            assert executor is None or executor.wait(0.05) == []
            return len(self.noted(attempt)) == count

        wait_until(are_there, 60.0)

    def supervisor(self, attempt: Attempt) -> int:
        started = api.read(api.Started, attempt.directory / api.STARTED)
        assert started is not None
        return started.pid

    def above(self, attempt: Attempt) -> list[psutil.Process]:
        """Return what is above its supervisor: on Ray the fork server, the agent, the raylet."""
        return psutil.Process(self.supervisor(attempt)).parents()

    def vanish(self, attempt: Attempt, within_seconds: float) -> float:
        """Wait until neither they nor the supervisor are alive; return the seconds it took."""
        supervisor = self.supervisor(attempt)
        return wait_until(
            lambda: not self.alive(attempt) and processes.start_ticks(supervisor) is None,
            within_seconds,
        )


@pytest.fixture
def family() -> Family:
    return Family()


NVIDIA_SMI = """#!/bin/sh
case "$1" in
  --query-gpu=*) cat {folder}/memory 2>/dev/null ;;
  --query-compute-apps=*) cat {folder}/apps ;;
esac
"""


def answer_as_driver(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let nvidia-smi answer with the files `memory` and `apps` of this folder."""
    program = folder / "nvidia-smi"
    program.write_text(NVIDIA_SMI.format(folder=folder))
    program.chmod(0o700)
    patch.setenv("PATH", str(folder), prepend=":")


DRIVER = """
import sys
from pathlib import Path
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, Slots
from orchestrator.execution.ray import RayExecutor
attempt = Attempt.model_validate_json(Path(sys.argv[1]).read_text())
attempt = attempt.model_copy(update={"owner": processes.this_owner()})
with RayExecutor(Slots(1, "cpu", "", 1), entry="nasty:main", address=sys.argv[2]) as executor:
    executor.submit(attempt)
    while True:
        executor.wait(0.5)
"""


def driver_of(attempt: Attempt, address: str) -> subprocess.Popen[bytes]:
    """An orchestrator in a process of its own, which evaluates this attempt of `nasty`."""
    draft = attempt.directory.with_suffix(".draft")
    draft.write_text(attempt.model_dump_json())
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    return subprocess.Popen([sys.executable, "-c", DRIVER, draft, address], env=environment)
