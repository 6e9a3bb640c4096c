"""The served pages: who may read them, what they say of a run, and that they keep up with it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from budgets.ledger.chain import LEDGER
from orchestrator.cli.serve import listening, served
from orchestrator.look import page
from orchestrator.look import serve as serving
from orchestrator.look.serve import HOST, Site, directories, identifier
from tests.orchestrator.look import pages

GOLDEN = Path(__file__).parents[2] / "golden/runs"


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is made in no time."""
    monkeypatch.setattr(page, "sections_of", pages.sections)


@pytest.fixture
def root(tmp_path: Path) -> Path:
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


def of(root: Path, name: str) -> str:
    """The run's address, from the list's."""
    return identifier(root / "phase1" / name)


@pytest.fixture
def running(root: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """`go` is carried out by this process; the records that are still to come."""
    monkeypatch.setattr("orchestrator.records.standing.goes_on", lambda state, now: True)
    monkeypatch.setattr("orchestrator.records.standing._is_here", lambda state: True)
    lines = (GOLDEN / "go" / LEDGER).read_bytes().splitlines(keepends=True)
    (root / "phase1/go" / LEDGER).write_bytes(b"".join(lines[:40]))
    return b"".join(lines[40:])


def test_the_list_and_a_page_say_the_same_of_each_run(
    site: Site, client: TestClient, running: bytes
) -> None:
    listed, entries = client.get("").text, site.entries()
    assert entries[0].stands.startswith("running")
    assert {one.place for one in entries} == {"phase1/go", "phase1/statuses", "phase1/calibration"}
    for one in entries:
        shown = client.get(one.id).text
        assert f'href="{site.home}{one.id}"><bdi>{one.header.name}</bdi>' in listed
        for place in (listed.split(f'{one.id}">')[0].rsplit("<tr", 1)[1], shown):
            assert f"mood-{one.answer.mood}" in place
        for text in (one.answer.title, one.answer.sentence, one.stands):
            assert escape(text) in listed
            assert escape(text) in shown
        assert ("<progress" in shown) == one.goes_on


def test_nobody_reads_without_the_token_or_by_another_name(client: TestClient, root: Path) -> None:
    run = of(root, "go")
    assert client.get(run).status_code == 200
    for address in ("/", "/favicon.ico", f"/{'0' * 32}/", f"/{'é' * 8}/", f"/{run}"):
        assert client.get(f"http://{HOST}{address}").status_code == 404
    for name in ("evil.example", f"{HOST}.evil.example", "", "[::1]"):
        assert client.get(run, headers={"Host": name}).status_code >= 400
    assert client.get(run, headers={"Host": "localhost:9"}).status_code == 200


def test_only_what_is_there_is_found(client: TestClient, root: Path) -> None:
    run = of(root, "go")
    (root / "phase1/go/reports").mkdir(exist_ok=True)
    for path in (
        *("../ledger.jsonl", "%2e%2e/ledger.jsonl", "phase1/go", "go", "/etc/passwd"),
        *(f"{run}/ledger.jsonl", f"{run}/../..", "%00", "follow.js/part"),
    ):
        assert client.get(path).status_code == 404, path


def test_nothing_can_be_changed_and_nothing_is(client: TestClient, root: Path) -> None:
    files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    run = of(root, "go")
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, run).status_code == 405
    head = client.head(run)
    assert (head.status_code, head.content) == (200, b"")
    for path in ("", run, of(root, "statuses"), "?part"):
        client.get(path)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == files


def test_a_page_may_load_our_script_and_nothing_else(client: TestClient, root: Path) -> None:
    for path in ("", of(root, "go"), "?part", "follow.js", "nothing"):
        headers = client.get(path).headers
        rules = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
        assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
        assert rules["script-src"] == rules["connect-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
    assert client.get(of(root, "go")).text.count("<script") == 1


def test_who_has_a_page_already_is_told_so(client: TestClient, root: Path, running: bytes) -> None:
    for address in ("?part", f"{of(root, 'statuses')}?part"):
        found = client.get(address)
        again = client.get(address, headers={"If-None-Match": found.headers["ETag"]})
        assert "<html" not in found.text
        assert (again.status_code, again.content) == (304, b"")
    before = client.get(f"{of(root, 'go')}?part")
    with (root / "phase1/go" / LEDGER).open("ab") as ledger:
        ledger.write(running)
    after = client.get(f"{of(root, 'go')}?part", headers={"If-None-Match": before.headers["ETag"]})
    assert after.status_code == 200
    assert "finished" in after.text


def test_a_process_that_dies_is_noticed_though_its_ledger_stays(
    site: Site, running: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.entries()[0].goes_on
    monkeypatch.setattr("orchestrator.records.standing.goes_on", lambda state, now: False)
    stands = {one.place: one.stands for one in site.entries()}
    assert stands["phase1/go"].startswith("interrupted")


def test_a_ledger_that_cannot_be_read_is_shown_as_such_beside_the_others(
    client: TestClient, site: Site, root: Path
) -> None:
    odd = {"empty": b"", "damaged": b"{}\n{}\n", "binary": bytes(range(256)) * 9, "<b>&": b"no\n"}
    for name, data in odd.items():
        (root / name).mkdir()
        (root / name / LEDGER).write_bytes(data)
    (root / "folder" / LEDGER).mkdir(parents=True)
    (root / "link").mkdir()
    (root / "link" / LEDGER).symlink_to(GOLDEN / "go" / LEDGER)
    entries = {one.place: one for one in site.entries()}
    listed = client.get("").text
    for name in (*odd, "folder", "link"):
        assert (entries[name].stands, entries[name].answer.mood) == ("unreadable", "trouble")
        assert escape(entries[name].answer.sentence) in client.get(entries[name].id).text
    assert "<b>&" not in listed
    assert listed.count("<tr class=") == 9
    shutil.rmtree(root / "damaged")
    assert client.get(entries["damaged"].id).status_code == 404


def test_runs_are_found_where_they_lie_and_nothing_else_is(root: Path) -> None:
    for place in ("a/b/c/d", ".hidden", "phase1/go/eval/x", "old.damaged", "eval"):
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / LEDGER).touch()
    (root / "loop").symlink_to(root)
    found = {str(one.relative_to(root)) for one in directories(root)}
    assert found == {"a/b/c/d", "phase1/go", "phase1/statuses", "phase1/calibration"}
    assert list(directories(root / "phase1/go")) == [root / "phase1/go"]


def test_hostile_text_is_text_in_the_list_and_at_the_head_of_a_page(
    client: TestClient, site: Site, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "answer", lambda run: pages.hostile_answer())
    os.rename(root / "phase1/go", root / "phase1" / pages.HOSTILE.replace("/", "-"))
    (one,) = (one for one in site.entries() if "script" in one.place)
    for address in ("", one.id):
        text = client.get(address).text
        assert "&lt;script&gt;" in text
        assert text.count("<script") == 1
        assert not {"\u202e", "\x1b"} & set(text)


def test_one_run_is_shown_first_where_it_is_served_alone(root: Path) -> None:
    site = Site(root / "phase1/go")
    assert site.first == f"{site.home}{identifier(root / 'phase1/go')}"
    assert Site(root).first.count("/") == 2
    assert served("go", root) == root / "phase1/go"
    with pytest.raises(ValueError, match="--runs-dir"):
        served(None, root / "none")


def test_a_port_or_an_extra_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        socket.create_server((HOST, 0)) as taken,
        pytest.raises(ValueError, match="--port 0"),
    ):
        listening(taken.getsockname()[1])
    for module in [name for name in sys.modules if name.startswith(("starlette", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, "orchestrator.look.serve")
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(ValueError, match=r"pip install 'cmaes-orchestrator\[serve\]'"):
        listening(0)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_ends_at_once(root: Path, ending: signal.Signals) -> None:
    (root / "phase1/go").rename(root / "go")
    words = [sys.executable, "-m", "orchestrator", "serve", "--port", "0", "--json"]
    buffered = {name: said for name, said in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*words, "--runs-dir", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=buffered,
    ) as process:
        try:
            assert process.stdout is not None
            said = orjson.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
            assert said["pid"] == process.pid
            with closing(HTTPConnection(HOST, said["port"], timeout=60)) as connection:
                connection.request("GET", f"{urlsplit(said['url']).path}follow.js")
                assert b"use strict" in connection.getresponse().read()
                process.send_signal(ending)  # while the connection is open
                out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (out, err) == ("", "")
    assert process.returncode == (0 if ending == signal.SIGINT else 143)
