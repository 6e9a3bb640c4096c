"""The served pages: who may read them, what they say of a run, and that they keep up with it."""

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from budgets.ledger import LEDGER
from orchestrator.look import sections
from orchestrator.look.page import Answer, Page, Section
from orchestrator.look.run import Run
from orchestrator.look.serve import HOST, Site, identifier
from orchestrator.records.runs import runs_below
from tests.orchestrator.look.golden import GOLDEN


def pages(run: Run) -> Page:
    """Stands in for that of a run, which takes seconds."""
    more = Section(f"{run.state.records} records", ["inside"])
    sections = (Section("Counted", [more, Section("Other", [])]),)
    return Page("run", "", Answer(title="", sentence=""), sections)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sections, "page_of", pages)
    for name in ("go", "statuses", "calibration"):
        shutil.copytree(GOLDEN / name, tmp_path / "runs/phase1" / name)
    return tmp_path / "runs"


@pytest.fixture
def site(root: Path) -> Site:
    return Site(root)


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    with TestClient(site.app, base_url=f"http://{HOST}:8321{site.home}") as made:
        yield made


@pytest.fixture
def go(root: Path) -> str:
    """The address of the run, from the list's."""
    return identifier(root / "phase1/go")


@pytest.fixture
def running(root: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """`go` is carried out by this process; the records that are still to come."""
    monkeypatch.setattr("orchestrator.records.runs.goes_on", lambda state, now: True)
    monkeypatch.setattr("orchestrator.records.runs._is_here", lambda state: True)
    lines = (GOLDEN / "go" / LEDGER).read_bytes().splitlines(keepends=True)
    (root / "phase1/go" / LEDGER).write_bytes(b"".join(lines[:40]))
    return b"".join(lines[40:])


def test_the_list_and_a_page_say_the_same_of_each_run(
    site: Site, client: TestClient, running: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, entries = client.get("").text, site.entries()
    assert entries[0].stands == "running"
    assert {one.place for one in entries} == {"phase1/go", "phase1/statuses", "phase1/calibration"}
    for one in entries:
        shown = client.get(one.id).text
        assert f'href="{site.home}{one.id}"><bdi>{one.name}</bdi>' in listed
        for text in (one.answer.title, one.answer.sentence, one.stands, f"mood-{one.answer.mood}"):
            assert escape(text) in listed
            assert escape(text) in shown
        assert ("<progress" in shown) == (one.stands == "running")
    part = client.get(f"{entries[1].id}?part")
    again = client.get(f"{entries[1].id}?part", headers={"If-None-Match": part.headers["ETag"]})
    assert ("<html" in part.text, again.status_code, again.content) == (False, 304, b"")
    monkeypatch.setattr("orchestrator.records.runs.goes_on", lambda state, now: False)
    stands = {one.place: one.stands for one in site.entries()}
    assert stands["phase1/go"] == "interrupted"  # though its ledger is the same


def test_only_who_knows_the_address_of_a_page_reads_it(client: TestClient, go: str) -> None:
    """Paths, other methods and host names are asked for in tests/acceptance/test_pages.py."""
    assert client.get(go, headers={"Host": "localhost:9"}).status_code == 200
    for address in ("/", "/favicon.ico", f"/{'0' * 32}/", f"/{'é' * 8}/", f"/{go}"):
        assert client.get(f"http://{HOST}{address}").status_code == 404
    for path in ("phase1/go", "%2e%2e/ledger.jsonl", f"{go}/../..", "%00", "follow.js/part"):
        assert client.get(path).status_code == 404, path
    for path in ("", go, "?part", "follow.js", "nothing"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")


def test_a_ledger_that_cannot_be_read_is_shown_as_such_beside_the_others(
    client: TestClient, site: Site, root: Path
) -> None:
    odd = {"empty": b"", "damaged": b"{}\n{}\n", "binary": bytes(range(256)) * 9, "<b>\x1b": b"\n"}
    for name, data in odd.items():
        (root / name).mkdir()
        (root / name / LEDGER).write_bytes(data)
    (root / "link").mkdir()
    (root / "link" / LEDGER).symlink_to(GOLDEN / "go" / LEDGER)
    entries = {one.place: one for one in site.entries()}
    for name in (*odd, "link"):
        assert (entries[name].stands, entries[name].answer.mood) == ("unreadable", "trouble")
        assert escape(entries[name].answer.sentence) in client.get(entries[name].id).text
    listed = client.get("").text
    assert (listed.count("<tr class="), "<b>" in listed, "\x1b" in listed) == (8, False, False)
    shutil.rmtree(root / "damaged")
    assert client.get(entries["damaged"].id).status_code == 404


def test_runs_are_found_where_they_lie_and_nothing_else_is(root: Path) -> None:
    for place in ("a/b/c/d", ".hidden", "phase1/go/eval/x", "old.damaged", "eval"):
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / LEDGER).touch()
    (root / "loop").symlink_to(root)
    found = {str(one.relative_to(root)) for one in runs_below(root)}
    assert found == {"a/b/c/d", "phase1/go", "phase1/statuses", "phase1/calibration"}
    with TestClient((one := Site(root / "phase1/go")).app, f"http://{HOST}{one.home}") as client:
        assert 'id="answer"' in client.get("").text


def test_a_port_that_is_taken_is_one_line(command: Callable[..., Any], root: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        answer = command("serve", str(root), "--port", str(taken.getsockname()[1]))
    assert (answer.code, "already in use" in answer.err) == (2, True)


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_ends_at_once(root: Path, ending: signal.Signals, code: int) -> None:
    words = [sys.executable, "-m", "orchestrator", "serve", str(root), "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = orjson.loads(b"".join(iter(process.stdout.readline, b"}\n")) + b"}")
            with closing(HTTPConnection(HOST, said["port"], timeout=60)) as connection:
                connection.request("GET", f"{urlsplit(said['url']).path}follow.js")
                assert b"use strict" in connection.getresponse().read()
                process.send_signal(ending)  # while the connection is open
                assert process.communicate(timeout=20) == (b"", b"")
        finally:
            process.kill()
    assert process.returncode == code
