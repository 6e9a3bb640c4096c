"""Runs to tell of, a tracker that only remembers, and libraries that misbehave."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.records.recorded import Result
from orchestrator.records.tail import Tail
from orchestrator.trackers.figures import Figures, Reading
from orchestrator.trackers.follow import Follower
from orchestrator.trackers.followers import Following
from orchestrator.trackers.place import Answer, Place
from orchestrator.trackers.sink import Beginning, Sink
from orchestrator.trackers.terms import Value
from tests.conftest import REPOSITORY


def figures_of(run: Path) -> list[Figures]:
    """All that a run's ledger says."""
    tail, reading = Tail(run), Reading()
    said = (reading.figures(tail.state, record) for record in tail.news() if tail.state)
    return [figures for figures in said if figures is not None]


@pytest.fixture(scope="session")
def all_figures() -> Callable[[Path], list[Figures]]:
    """`all_figures(run)`: all that a run's ledger says."""
    return figures_of


Curves = dict[str, dict[int, float]]
"""Values by name and step."""


@pytest.fixture(scope="session")
def curves() -> Callable[[Sequence[Figures]], Curves]:
    """`curves(figures)`: each name's values by step, the last of a step."""

    def found(said: Sequence[Figures]) -> Curves:
        by_name: Curves = {}
        for figures in said:
            for name, value in figures.values.items():
                by_name.setdefault(name, {})[figures.step] = value
        return by_name

    return found


@dataclass
class Notebook:
    """A sink that keeps what it is told, and may be continued from where it was."""

    beginnings: list[Beginning] = field(default_factory=list)
    told: list[Figures] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    summaries: list[tuple[dict[str, Value], bool]] = field(default_factory=list)
    fails_at_batch: int | None = None

    def begin(self, run: Beginning) -> int:
        self.beginnings.append(run)
        self.told = [figures for figures in self.told if figures.step < run.told]
        return run.told

    def log(self, batch: Sequence[Figures]) -> None:
        self.batches.append(len(batch))
        if self.fails_at_batch == len(self.batches):
            raise RuntimeError("no more")
        self.told += batch

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        self.summaries.append((dict(summary), is_over))


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture
def tracked(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of a whole run, under a name that means something to shells and to URLs."""
    directory = tmp_path / "50%25 of <b>$(x)"
    shutil.copytree(finished_run, directory)
    return directory


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        monkeypatch.delenv(name)


_LOOPBACK_ONLY = """
import socket

def refused(connect):
    def only_here(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            raise PermissionError(f"a connection to {address} was attempted")
        return connect(self, address)
    return only_here

socket.socket.connect = refused(socket.socket.connect)
socket.socket.connect_ex = refused(socket.socket.connect_ex)
"""


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What programs try to reach in the network: by a socket they fail, by HTTP they are noted.

    A home of one's own, too, in which nothing is.
    """
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard/sitecustomize.py").write_text(_LOOPBACK_ONLY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "guard"), str(REPOSITORY)]))
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tried: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, address)
            monkeypatch.setenv(name.upper(), address)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        threading.Thread(target=_note, args=(proxy, tried), daemon=True).start()
        yield tried
        proxy.shutdown(socket.SHUT_RDWR)


def _note(proxy: socket.socket, tried: list[str]) -> None:
    while True:
        try:
            connection, _ = proxy.accept()
        except OSError:
            return
        with connection:
            tried.append(connection.recv(200).decode(errors="replace"))


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`instead(code)`: a `wandb` whose `init` does that."""

    def replaced(code: str) -> None:
        package = tmp_path / "fakes/wandb"
        package.mkdir(parents=True)
        indented = "\n".join(f"    {line}" for line in code.strip().splitlines())
        (package / "__init__.py").write_text(
            "import ctypes, errno, getpass, os, signal, sys, time\n"
            "def Settings(**settings):\n    return settings\n"
            f"def init(**terms):\n{indented}\n"
        )
        places = [str(tmp_path / "fakes"), str(REPOSITORY)]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))

    return replaced


@pytest.fixture(scope="session")
def failed_run(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Path:
    """A run none of whose evaluations is healthy, paused by a rule."""
    root = tmp_path_factory.mktemp("failed")
    settings = {"dimension": 2, "failure_rate": 1.0}
    return run_search(root, settings=settings, assumed_seconds=1.0).directory


def tell_in_process(place: Place, sink: Sink, dies_at: int | None) -> None:
    """Tell what there is; die after so many batches, before they are remembered."""
    place.make()
    log, batches = sink.log, []

    def dying(batch: Sequence[Figures]) -> None:
        log(batch)
        batches.append(batch)
        if len(batches) == dies_at:
            raise KeyboardInterrupt

    sink.log = dying  # type: ignore[method-assign]
    Follower(place, lambda: sink, {}).follow(lambda _: False)


def awaited(following: Following) -> Answer:
    """How it went, once its process has ended."""
    deadline = time.monotonic() + 120
    while not following.has_ended():
        assert time.monotonic() < deadline, following.place.log.read_text()
        time.sleep(0.01)
    assert following.answer is not None
    return following.answer


@pytest.fixture
def told() -> Iterator[Callable[..., Answer]]:
    """`told(run, name, *options)`: what is there told to a real library in its own process."""
    there: list[Following] = []

    def tell(run: Path, name: str, *options: str) -> Answer:
        there.append(Following(Place(run, name), "--linger=60", *options))
        there[-1].release()
        return awaited(there[-1])

    yield tell
    for following in there:
        following.kill("the test is over")
