"""Fixtures for whole runs: a session and the command line, both in this process."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import settings

from budgets.ledger import SYSTEM_CLOCK, Clock
from budgets.state import Observer
from budgets.storage import DISK, Storage
from objectives import registry
from objectives.api import ObjectiveSpec
from objectives.files import cache_directory
from orchestrator.cli import app as command_line
from orchestrator.execution.devices import Engine
from orchestrator.look.reports import ReportFiles
from orchestrator.matrix.carry_out import carry_out, carry_out_search
from orchestrator.matrix.check_commands import knob_check
from orchestrator.records.runs import Result
from orchestrator.run.loop import Stop
from orchestrator.run.session import Session
from tests.asking import config_for
from tests.product.books import Books
from tests.product.fixtures import product

__all__ = ["product"]

REPOSITORY = Path(__file__).parent.parent
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, not a guessable name in it
ROOM = 2 << 30
"""Bytes that the tests may need at once."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "rewrite tests/approved as the product prints it now (tests/acceptance/test_approved.py)"
    parser.addoption("--approve", action="store_true", help=text)


def pytest_configure() -> None:
    """Temporary directories are in memory where it has the room: runs sync after every record.

    A sync is made all the same, and takes microseconds there instead of milliseconds. What a disk
    loses when the power fails is simulated (tests/simulation), never left to chance. Ctrl-C
    is heard, however the tests were started.
    """
    # Busy machines too, and the same examples here as where a change is judged.
    settings.register_profile("any machine", deadline=None, derandomize=True)
    settings.load_profile("any machine")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun with `&` in a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if MEMORY.is_dir():
        memory = os.statvfs(MEMORY)
        enough = memory.f_bavail * memory.f_frsize > ROOM
        if enough and not memory.f_flag & os.ST_NOEXEC:  # what torch compiles is executed there
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In several processes a file stays in one. What starts a Ray is marked as one group: two Rays
    may take the same port. What needs a package that is not here is skipped.
    """
    for item in items:
        for marker in item.iter_markers("needs"):
            if find_spec(marker.args[0]) is None:
                item.add_marker(pytest.mark.skip(reason=f"{marker.args[0]} is not installed"))
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(REPOSITORY))))


def unheard(text: str) -> None:
    pass


def make_session(
    root: Path,
    engine: Engine | None = None,
    say: Callable[[str], None] = unheard,
    clock: Clock | None = None,
) -> Session:
    return Session(
        root,
        engine or Engine(kind="inline", workers=1),
        observe=lambda state, event: None,
        say=say,
        stop=Stop(),
        clock=clock or SYSTEM_CLOCK,
        report=ReportFiles().write,
    )


@pytest.fixture(scope="session")
def run_search() -> Callable[..., Result]:
    """Runs, or resumes, a phase 1 search in this process."""

    def run(
        root: Path,
        objective: str = "sphere",
        settings: dict[str, Any] | None = None,
        engine: Engine | None = None,
        overrides: Sequence[tuple[str, str]] = (),
        say: Callable[[str], None] = unheard,
        storage: Storage = DISK,
        clock: Clock | None = None,
        stop: Stop | None = None,
        observe: Observer | None = None,
        **request: Any,
    ) -> Result:
        session = make_session(root, engine, say, clock)
        session.storage = storage
        session.stop, session.observe = stop or session.stop, observe or session.observe
        spec = ObjectiveSpec(name=objective, settings=settings or {})
        request = {"phase": "phase1", "tier": "min", **request}
        with session:
            return carry_out_search(
                session,
                config_for(objective=registry.load(spec), **request),
                session.engine.slots(),
                overrides,
            )

    return run


@pytest.fixture(scope="session")
def run_check() -> Callable[..., Result]:
    """Makes, or resumes, a check in this process."""

    def run(
        root: Path,
        objective: str = "idle",
        settings: dict[str, Any] | None = None,
        engine: Engine | None = None,
        seeds: int = 3,
        knobs: tuple[str, ...] = (),
        **keys: Any,
    ) -> Result:
        usual = {} if objective == "nanochat" else {"dimension": 2}
        spec = ObjectiveSpec(name=objective, settings={**usual, **(settings or {})})
        request = config_for("check", "min", registry.load(spec), **keys)
        asked = knob_check(request, seeds, knobs)
        with make_session(root, engine) as session:
            return carry_out(asked, session, session.engine.slots())

    return run


@pytest.fixture(scope="session")
def found() -> Callable[[Path], dict[str, Any]]:
    """What the run in a directory found, without times and interruptions."""
    return lambda directory: Books.of(directory).essence


@pytest.fixture
def nanochat_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A home with a nanochat (that trains nothing), its data and its tokenizer."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(REPOSITORY / "tests/objectives/fake_nanochat", home / "nanochat")
    python = home / "nanochat/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    for name in ("base_data_climbmix/0.parquet", "base_data_climbmix/1.parquet"):
        file = home / ".cache/nanochat" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    (home / ".cache/nanochat/tokenizer").mkdir()
    for name in ("tokenizer.pkl", "token_bytes.pt"):
        (home / ".cache/nanochat/tokenizer" / name).write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_directory().parent))  # what is prepared stays
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("NANOCHAT_BASE_DIR", raising=False)
    return home


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty directory beside whatever else the test keeps."""
    directory = tmp_path / "place"
    directory.mkdir()
    return directory


@dataclass
class Answer:
    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once() -> Iterator[None]:
    """What typer makes of our functions at every start of a program, which here has hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """`orchestrator ARGUMENTS` in this process, in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["orchestrator", *arguments])
        handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            command_line.main()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        finally:
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
        captured = capfdbinary.readouterr()
        return Answer(code, captured.out.decode(), captured.err.decode())

    return run
