"""Sessions that take a run up: full disks, clocks, ledgers of an older schema."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from budgets.events import Event, GenerationAsked
from budgets.ledger import HEAD, LEDGER, LOCK
from budgets.state import RunState
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.execution import devices
from orchestrator.execution.api import Outcome, Slots
from orchestrator.execution.engine import Engine
from orchestrator.execution.inline import InlineExecutor
from orchestrator.matrix.matrix import carry_out_search
from orchestrator.records.runs import Result
from orchestrator.run.files import PlanChangedError
from orchestrator.run.session import Session
from tests.asking import config_for
from tests.orchestrator.conftest import NOISY
from tests.simulation.session import Person, SimulatedEngine

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Cut = Callable[..., None]

# Forks


@pytest.fixture
def root(run: Path) -> Path:
    """Where a finished run of tier min and its calibration are."""
    return run.parent.parent


def test_a_run_goes_on_with_the_verdict_that_it_was_begun_with(
    tmp_path: Path, run_search: RunSearch
) -> None:
    terms = {"tier": "target", "max_evals": 16}
    begun = run_search(tmp_path, confirm_seeds=4, **terms)
    assert run_search(tmp_path, confirm_seeds=4, **terms).directory == begun.directory
    with pytest.raises(PlanChangedError, match=r"confirmation\.seeds: 4 -> 8"):
        run_search(tmp_path, **terms)


# Full disks


def test_a_run_is_its_owners_alone(tmp_path: Path, run_search: RunSearch) -> None:
    umask = os.umask(0o022)
    try:
        run = run_search(tmp_path, assumed_seconds=1.0).directory
    finally:
        os.umask(umask)
    modes = {name: stat.S_IMODE((run / name).stat().st_mode) for name in (".", LEDGER, HEAD, LOCK)}
    assert modes == {".": 0o700, LEDGER: 0o600, HEAD: 0o600, LOCK: 0o600}


# Deadlines


# What a session says and keeps to


class Listens(Person):
    """Notes when it takes the signals over."""

    def __init__(self, noted: list[str]) -> None:
        super().__init__()
        self._noted = noted

    def install(self) -> None:
        self._noted.append("listens")


class Talks(InlineExecutor):
    """Warns of one thing when it starts and of another with its second outcome."""

    def __init__(self, slots: Slots, noted: list[str]) -> None:
        super().__init__(slots)
        self._noted, self._looks = noted, 0
        noted.append(f"{slots.threads} threads")

    def __enter__(self) -> Self:
        self._noted.append("starts")
        self.warnings = ("it is cold",)
        return self

    def __exit__(self, *_: object) -> None:
        self._noted.append("ends")
        super().__exit__()

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        self._looks += 1
        if self._looks == 2:
            self.warnings += ("it is slow",)
        return super().wait(timeout_seconds)


def talks(noted: list[str], threads: int, workers: int = 1) -> Engine:
    make = partial(Talks, noted=noted)
    return SimulatedEngine("inline", workers=workers, threads=threads, make=make)


SPHERE = config_for(
    "phase1", "min", registry.load(ObjectiveSpec(name="sphere")), assumed_seconds=1.0
)


def talking(root: Path, threads: int = 1, dies_after: int = 99, workers: int = 1) -> list[str]:
    """What is done and said in the session of a search, of which nobody hears more than that."""
    noted: list[str] = []

    def watch(state: RunState, event: Event) -> None:
        if isinstance(event, GenerationAsked):
            noted.append(f"asks {event.generation}")
        if state.accounts.evaluations == dies_after:
            raise KilledError

    engine = talks(noted, threads, workers)
    session = Session(root, engine, watch, noted.append, stop=Listens(noted))
    with suppress(KilledError), session:
        carry_out_search(session, SPHERE, engine.slots())
    return [line for line in noted if not line.startswith("Note")]


class KilledError(Exception):
    """The session ends here."""


def test_what_an_executor_warns_of_is_said_once_and_before_the_next_generation(
    tmp_path: Path,
) -> None:
    assert talking(tmp_path) == [
        "listens",
        "Starting 1 worker (inline) ...",
        "1 threads",
        "starts",
        "listens",  # again: an executor may have taken the signals for itself
        "Warning: it is cold.",
        "asks 0",
        "Warning: it is slow.",
        "asks 1",
        "ends",
    ]


@pytest.mark.parametrize(
    ("cpus", "started"), [(2, "1 worker"), (3, "1 worker"), (4, "2 workers"), (9, "2 workers")]
)
def test_a_run_taken_up_has_no_more_threads_at_once_than_there_are_processors(
    cpus: int, started: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "usable_cpus", lambda: cpus)
    assert "Starting 1 worker (inline) ..." in talking(tmp_path, threads=2, dies_after=3)
    again = talking(tmp_path, threads=1, workers=2)
    assert {"2 threads", f"Starting {started} (inline) ..."} < set(again)


@dataclass(frozen=True)
class Gpu(Engine):
    """As if this machine had one."""

    def slots(self) -> Slots:
        return Slots(1, "cuda", "a GPU", 1)


def test_a_run_is_not_taken_up_on_another_kind_of_device(
    run: Path, root: Path, run_search: RunSearch, cut: Cut
) -> None:
    cut(run, 12)
    before = (run / LEDGER).read_bytes()
    with pytest.raises(
        ValueError, match=r"planned for cpu, this machine offers cuda.*--device cpu"
    ):
        run_search(root, **NOISY, engine=Gpu("inline"))
    assert (run / LEDGER).read_bytes() == before


def test_a_run_that_another_process_concluded_meanwhile_is_over_and_no_error(
    tmp_path: Path, run_search: RunSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, results = Session._prepare, list[Result]()

    def overtaken(self: Session, *what: Any) -> None:
        monkeypatch.undo()
        results.append(run_search(tmp_path, assumed_seconds=1.0))
        prepare(self, *what)

    monkeypatch.setattr(Session, "_prepare", overtaken)  # between its look and its lock
    late = run_search(tmp_path, assumed_seconds=1.0)

    assert late.ruling == results[0].ruling
    assert late.state.head == results[0].state.head
