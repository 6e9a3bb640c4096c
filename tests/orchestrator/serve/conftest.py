"""Runs that go on because a test writes them, and a server of their page."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.serve.catalogue import Catalogue
from orchestrator.serve.handler import Limits
from orchestrator.serve.routes import Rhythm, Routes
from orchestrator.serve.server import Server

AT_ONCE = Rhythm(fresh_seconds=0.0, rest_seconds=0.0)
"""Nothing is remembered: a test need not wait for anything."""

HOSTILE = (
    '"><script>window.owned = 1</script><img src=x onerror="window.owned = 2">\u202e]]>{{7*7}}'
)


@dataclass
class Growing:
    """A run that goes on: the ledger of one that is over, written once more record by record.

    Its process is this one, so that it is taken for running.
    """

    directory: Path
    lines: list[bytes]
    written: int = 0

    def write(self, records: int = 1) -> None:
        with (self.directory / LEDGER).open("ab") as file:
            file.write(b"".join(self.lines[self.written : self.written + records]))
        self.written += records

    def write_until(self, kind: str) -> None:
        """Up to the next record of that kind."""
        while True:
            line = self.lines[self.written]
            self.write()
            if orjson.loads(line)["event"]["kind"] == kind:
                return

    def finish(self) -> None:
        self.write(len(self.lines) - self.written)


@pytest.fixture
def grow(finished_run: Path, tmp_path: Path) -> Callable[..., Growing]:
    """`grow(name, records, of=run)`: a run in `tmp_path/runs/phase1`, as far as it is written."""

    def begin(name: str = "growing", records: int = 1, of: Path = finished_run) -> Growing:
        directory = tmp_path / "runs/phase1" / name
        directory.mkdir(parents=True)
        run = Growing(directory, (of / LEDGER).read_bytes().splitlines(keepends=True))
        run.write(records)
        return run

    return begin


@pytest.fixture
def hostile(
    finished_run: Path, tmp_path: Path, tamper: Callable[[Path, Callable[[Any], Any]], None]
) -> Path:
    """A run, in a directory, on a host and a device, with a failure, that all have that name."""
    directory = tmp_path / "runs/phase1" / HOSTILE.replace("/", "-")
    shutil.copytree(finished_run, directory)

    def rename(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            event = line["event"]
            if event["kind"] == "planned":
                event["plan"]["run_id"] = HOSTILE
            for key in event.keys() & {"cause", "device", "host"}:
                event[key] = event[key] and HOSTILE

    tamper(directory, rename)
    return directory


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Site:
    """A server in this process, and a client of it."""

    server: Server
    routes: Routes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.url

    def get(self, path: str, method: str = "GET", **headers: str) -> Response:
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, headers=named)
            response = connection.getresponse()
            return Response(response.status, dict(response.headers), response.read())
        finally:
            connection.close()

    def address(self, name: str) -> str:
        """Of the page of the run in a directory of that name."""
        run = next(r for r in self.routes.catalogue.runs() if r.directory.name == name)
        return f"/{run.id}"


@contextmanager
def serving(
    root: Path, rhythm: Rhythm = AT_ONCE, limits: Limits | None = None, port: int = 0
) -> Iterator[Site]:
    """A page of the runs in `root`."""
    routes = Routes(Catalogue(root, fresh_seconds=rhythm.fresh_seconds), rhythm=rhythm)
    server = Server(port, routes.answer, limits)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Site(server, routes)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The page of the runs in `tmp_path/runs`."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    with serving(tmp_path / "runs") as found:
        yield found


@pytest.fixture(scope="session")
def serve() -> Callable[..., Any]:
    """`with serve(root, rhythm, limits, port) as site:`."""
    return serving
