"""Sessions that take a run up: full disks, clocks, ledgers of an older schema."""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from budgets import storage
from budgets.events import Event, GenerationAsked, Reserved, Status
from budgets.ledger import HEAD, LEDGER, LOCK, Clock, LedgerStorageError, read
from budgets.plan import Window
from budgets.state import RunState
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.cli import session as conducting
from orchestrator.cli import terminal
from orchestrator.cli.errors import EXIT_STORAGE
from orchestrator.execution import devices
from orchestrator.execution.api import Attempt, Outcome, Slots
from orchestrator.execution.engine import Engine
from orchestrator.execution.inline import InlineExecutor
from orchestrator.look import text
from orchestrator.look.run import Run
from orchestrator.matrix.search import Searching
from orchestrator.records.recorded import Result
from orchestrator.run.files import PlanChangedError
from orchestrator.run.session import Session
from orchestrator.verify import verify
from tests.asking import config_for
from tests.executors import ending
from tests.ledgers import state_of
from tests.orchestrator.conftest import NOISY
from tests.orchestrator.matrix.conftest import shortened, trained
from tests.simulation.session import Person, SimulatedEngine

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Cut = Callable[..., None]

GOLDEN = Path(__file__).parents[2] / "golden"


# Forks


@pytest.fixture
def root(run: Path) -> Path:
    """Where a finished run of tier min and its calibration are."""
    return run.parent.parent


def names(root: Path) -> list[str]:
    return sorted(p.name for p in (root / "phase1").iterdir())


def test_a_default_that_is_asked_for_is_not_what_the_run_was_begun_with(
    tmp_path: Path, run_search: RunSearch
) -> None:
    terms = {"tier": "target", "max_evals": 16}
    begun = run_search(tmp_path, confirm_seeds=4, **terms)
    assert run_search(tmp_path, **terms).directory == begun.directory
    with pytest.raises(PlanChangedError, match=r"confirmation\.seeds: 4 -> 8"):
        run_search(tmp_path, confirm_seeds=8, **terms)


# Full disks


@dataclass
class Tight(storage.Disk):
    """A disk that is full when the test says so, but for what records take."""

    full_after: int = 1 << 60  # writes of records
    full: bool = False

    def write(self, handle: int, data: bytes) -> int:
        if data.startswith(b'{"seq":'):
            self.full_after -= 1
            self.full = self.full or self.full_after < 0
        return super().write(handle, data)

    def free_bytes(self, directory: Path) -> int:
        return 0 if self.full else 1 << 40


@pytest.mark.parametrize("records", [3, 4, 5, 20, 21, 30])
def test_a_disk_that_fills_up_pauses_the_run_which_then_ends_like_any_other(
    run: Path, root: Path, run_search: RunSearch, found: Found, records: int
) -> None:
    whole = found(run)
    shutil.rmtree(run)
    tight = Tight(full_after=records)

    paused = run_search(root, **NOISY, storage=tight)

    assert paused.ruling.decision == "pause"
    assert [t.rule for t in paused.ruling.triggers] == ["storage"]
    assert "make room and repeat the command" in paused.ruling.reason
    assert [f.rule for f in paused.state.fired] == ["storage"]
    assert not paused.state.accounts.holds
    assert paused.state == state_of(run)

    tight.full, tight.full_after = False, 1 << 60
    assert run_search(root, **NOISY, storage=tight).ruling.decision == "done"
    assert found(run) == whole
    assert verify(run).divergence is None


def test_what_fails_for_want_of_room_is_nobodys_fault_and_owed_again(
    run: Path, root: Path, run_search: RunSearch, found: Found
) -> None:
    whole, tight = found(run), Tight()
    shutil.rmtree(run)

    def no_room(attempt: Attempt) -> tuple[Status, str] | None:
        accounts = state_of(run).accounts
        if not accounts.holds or accounts.evaluations != 3:
            return None
        tight.full = True
        return Status.ERROR, "No space left"

    engine = ending(no_room, on_disk=False)
    paused = run_search(root, **NOISY, storage=tight, engine=engine)
    assert [t.rule for t in paused.ruling.triggers] == ["storage"]
    (tries,) = (
        ts
        for ts in paused.state.generations[0].attempts.values()
        if len(ts) and ts[-1].settled and ts[-1].settled.status is Status.LOST
    )
    assert tries[-1].settled is not None
    assert "make room" in tries[-1].settled.cause
    tight.full = False
    assert run_search(root, **NOISY, storage=tight).ruling.decision == "done"
    assert found(run)["generations"] == whole["generations"]
    assert verify(run).divergence is None


def test_a_pause_for_want_of_room_is_exit_8(run: Path) -> None:
    import typer

    from budgets.rules import Ruling, disk_full
    from orchestrator.cli.session import Output

    state = state_of(run)
    trigger = disk_full(0, "the disk is full; make room and repeat the command")
    result = Result(run, state, Ruling("pause", (trigger,), trigger.evidence))
    with pytest.raises(typer.Exit) as leaving:
        conducting.finish(result, Person(), Output(terminal.console(stderr=True)), as_json=False)
    assert leaving.value.exit_code == EXIT_STORAGE == 8


@pytest.mark.parametrize("records", [2, 5, 20, 38])
def test_a_disk_that_breaks_ends_the_session_and_loses_nothing_acknowledged(
    run: Path, root: Path, run_search: RunSearch, found: Found, records: int
) -> None:
    class Broken(storage.Disk):
        syncs = 0

        def sync(self, handle: int) -> None:
            if os.fstat(handle).st_ino == (run / LEDGER).stat().st_ino:
                Broken.syncs += 1
                if Broken.syncs == records:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                assert Broken.syncs < records, "no second attempt"
            super().sync(handle)

    whole = found(run)
    shutil.rmtree(run)
    with pytest.raises(LedgerStorageError, match=r"Input/output error.*repeat the command"):
        run_search(root, **NOISY, storage=Broken())
    assert len(read(run / LEDGER).records) in (records - 1, records)
    run_search(root, **NOISY)
    assert found(run) == whole


def test_a_run_is_its_owners_alone(tmp_path: Path, run_search: RunSearch) -> None:
    umask = os.umask(0o022)
    try:
        run = run_search(tmp_path, assumed_seconds=1.0).directory
    finally:
        os.umask(umask)
    modes = {name: stat.S_IMODE((run / name).stat().st_mode) for name in (".", LEDGER, HEAD, LOCK)}
    assert modes == {".": 0o700, LEDGER: 0o600, HEAD: 0o600, LOCK: 0o600}


# Deadlines


@dataclass
class Turning:
    """A clock that goes on by so many seconds with every look at its monotonic side."""

    step: float
    seconds: float = 0.0

    def monotonic(self) -> float:
        self.seconds += self.step
        return self.seconds

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    @property
    def clock(self) -> Clock:
        return Clock(self.monotonic, self.now)


@pytest.mark.parametrize("step", [0.5, 1.0, 2.0, 2.5, 3.0, 5.0])
def test_a_deadline_that_passes_in_mid_generation_is_a_stop(
    tmp_path: Path, run_search: RunSearch, step: float
) -> None:
    window = Window(hours=100 / 3600, margin_seconds=30)
    result = run_search(
        tmp_path,
        assumed_seconds=0.001,
        limit_seconds=10.0,  # an attempt reserves 20 s
        window=window,
        clock=Turning(step).clock,
    )
    records = read(result.directory / LEDGER).records
    began = datetime.fromisoformat(records[0].at)
    starts = [datetime.fromisoformat(r.at) for r in records if isinstance(r.event, Reserved)]
    assert all((start - began).total_seconds() <= 50.001 for start in starts)
    if result.ruling.decision == "stop":
        assert [t.rule for t in result.ruling.triggers] == ["budget"]
        assert "--window" in result.ruling.reason
        assert "--window" in text.sentence(Run(result.state, datetime.now(UTC)))
    assert result.ruling.decision == ("done" if step < 2.0 else "stop")


def test_a_window_that_is_over_is_refused_before_anything_is_made(
    tmp_path: Path, run_search: RunSearch
) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    clock = Clock(lambda: 0.0, lambda: now)
    just_over = Window(until=now + timedelta(seconds=60), margin_seconds=60.0)
    just_enough = Window(until=now + timedelta(seconds=600), margin_seconds=60.0)

    with pytest.raises(ValueError, match=r"--window: expected a moment more than 60 s ahead"):
        run_search(tmp_path, clock=clock, window=just_over, assumed_seconds=1.0)
    assert list(tmp_path.iterdir()) == []
    result = run_search(tmp_path, clock=clock, window=just_enough, assumed_seconds=1.0)
    assert result.ruling.decision == "done"


def test_a_calibration_whose_search_died_before_it_began_is_part_of_its_price(
    tmp_path: Path, run_search: RunSearch
) -> None:
    capped = {"settings": {"seconds": 0.02}, "max_device_hours": 1.0}
    first = run_search(tmp_path, **capped)
    shutil.rmtree(first.directory)  # as if it had died between the two
    again = run_search(tmp_path, **capped)
    other = run_search(tmp_path, **capped, run_id="other")

    assert first.state.plan.calibration == again.state.plan.calibration
    assert other.state.plan.calibration is not None
    assert other.state.plan.calibration.charged_ms == 0  # it is borne already


def test_nothing_is_searched_for_a_verdict_where_the_baseline_cannot_be_told_from_0(
    tmp_path: Path, search_confirmed: RunSearch
) -> None:
    (tmp_path / "own.py").write_text("def score(knobs, seed, budget): return knobs['x']")
    knobs = {
        "x": {"min": -1.0, "max": 1.0, "baseline": 0.0},
        "y": {"min": 0.0, "max": 1.0, "baseline": 0.5},
    }
    settings = {"directory": str(tmp_path), "knobs": knobs}
    terms = {"objective": "python:own:score", "settings": settings, "assumed_seconds": None}

    with pytest.raises(
        ValueError, match=r"cannot be told from 0, .* --set verdict.confirm_seeds=0$"
    ):
        search_confirmed(tmp_path, **terms)
    heard: list[str] = []
    with pytest.raises(ValueError, match="cannot be told from 0"):
        search_confirmed(tmp_path, **terms, say=heard.append)
    assert not heard  # it is calibrated already: nothing more is to be said
    assert not (tmp_path / "phase1").exists()
    result = search_confirmed(tmp_path, **terms, confirm_seeds=0, say=heard.append)
    assert result.ruling.decision == "done"
    assert any(line.startswith(("Warning: ", "Note: ")) for line in heard)


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
        Searching(SPHERE, engine.slots()).carry_out(session)
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


def test_a_session_that_ends_in_mid_generation_says_what_was_warned_of_and_ends_its_executor(
    tmp_path: Path,
) -> None:
    assert talking(tmp_path, dies_after=3)[-3:] == ["asks 0", "Warning: it is slow.", "ends"]


def test_a_run_taken_up_evaluates_on_as_many_threads_as_it_was_planned_with(
    tmp_path: Path,
) -> None:
    assert "1 threads" in talking(tmp_path, threads=1, dies_after=3)
    assert "1 threads" in talking(tmp_path, threads=2)


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


def test_each_run_of_a_session_is_evaluated_on_the_threads_that_it_was_planned_with(
    tmp_path: Path,
) -> None:
    talking(tmp_path, threads=1, dies_after=3)
    noted: list[str] = []
    engine = talks(noted, threads=2)
    with Session(
        tmp_path, engine, lambda state, event: None, noted.append, stop=Listens(noted)
    ) as session:
        for run_id in (None, "another", "third"):
            config = SPHERE.having({"search.run_id": run_id})
            Searching(config, engine.slots()).carry_out(session)
    starts = [line for line in noted if line in ("1 threads", "2 threads", "starts", "ends")]
    assert starts == ["1 threads", "starts", "ends", "2 threads", "starts", "ends"]


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


def test_nor_is_a_campaign(tmp_path: Path) -> None:
    directory = trained(tmp_path).directory
    shortened(directory, 4)
    before = (directory / LEDGER).read_bytes()
    with pytest.raises(ValueError, match=r"planned for cpu, this machine offers cuda"):
        trained(tmp_path, engine=Gpu("inline"))
    assert (directory / LEDGER).read_bytes() == before


def test_a_run_that_is_over_says_so_wherever_it_is_asked(
    run: Path, root: Path, run_search: RunSearch
) -> None:
    assert run_search(root, **NOISY, engine=Gpu("inline")).ruling.decision == "done"


def test_a_search_that_cannot_come_to_a_go_says_so_before_it_begins(
    tmp_path: Path, run_search: RunSearch
) -> None:
    said: list[str] = []
    terms: dict[str, Any] = {"tier": "target", "max_evals": 8, "confirm_seeds": 3}
    run_search(tmp_path, **terms, assumed_seconds=1.0, say=said.append)
    warned = [line for line in said if "no Go is possible" in line]
    assert len(warned) == 2
    assert warned[0].startswith("Warning: no Go is possible: it needs 5 fresh seeds")
    assert said.index(warned[1]) < said.index("Starting 1 worker (inline) ...")


@pytest.mark.parametrize("records", [12, 39], ids=["begun", "concluded"])
def test_what_was_mended_in_a_ledger_is_said(
    run: Path, root: Path, run_search: RunSearch, records: int
) -> None:
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join(lines[:records]) + b'{"seq":')
    (run / HEAD).unlink()
    said: list[str] = []

    run_search(root, **NOISY, say=said.append)

    assert len([line for line in said if line.startswith(f"{run / LEDGER}: ")]) == 1


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
