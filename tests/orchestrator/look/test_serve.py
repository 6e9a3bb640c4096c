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
from threading import Thread
from urllib.parse import urlsplit

import orjson
import pytest
import uvicorn
from starlette.testclient import TestClient

from budgets.ledger.chain import LEDGER
from orchestrator.cli.serve import listening, served
from orchestrator.look import page
from orchestrator.look.blocks import Section
from orchestrator.look.run import Run
from orchestrator.look.serve import HOST, Runs, Site, directories, identifier
from tests.orchestrator.look import pages

GOLDEN = Path(__file__).parents[2] / "golden/runs"


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is made in no time."""
    monkeypatch.setattr(page, "answer_of", pages.answer)
    monkeypatch.setattr(page, "sections_of", pages.sections)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("go", "statuses", "calibration"):
        shutil.copytree(GOLDEN / name, tmp_path / "runs/phase1" / name)
    return tmp_path / "runs"


class Clock:
    """Seconds that a test decides."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(root: Path, clock: Clock) -> Site:
    return Site(Runs(root, clock=clock))


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    with TestClient(site.app, base_url=f"http://{HOST}:8321{site.home}") as made:
        yield made


def of(root: Path, name: str) -> str:
    """The run's address, from the list's."""
    return identifier(root / "phase1" / name)


def cut_to(directory: Path, records: int) -> list[bytes]:
    """A run that goes on, carried out by this process, with so many records; and the others."""
    lines = (GOLDEN / "go" / LEDGER).read_bytes().splitlines(keepends=True)
    (directory / LEDGER).write_bytes(b"".join(lines[:records]))
    return lines[records:]


@pytest.fixture
def running(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """`go` goes on; the records that are still to come."""
    monkeypatch.setattr("orchestrator.records.standing.goes_on", lambda state, now: True)
    monkeypatch.setattr("orchestrator.records.standing._is_here", lambda state: True)
    return cut_to(root / "phase1/go", 40)


def test_the_list_and_a_page_say_the_same_of_each_run(
    site: Site, client: TestClient, root: Path, running: list[bytes]
) -> None:
    listed = client.get("").text
    rows, is_all = site.runs.rows()
    assert is_all
    assert rows[0].shown == "running"
    assert {row.place for row in rows} == {"phase1/go", "phase1/statuses", "phase1/calibration"}
    for row in rows:
        shown = client.get(row.id).text
        assert f'href="{site.home}{row.id}"><bdi>{row.name}</bdi>' in listed
        assert f'<tr class="mood-{row.mood}">' in listed
        assert f'class="live mood-{row.mood}"' in shown
        assert f'class="answer mood-{row.mood}"' in shown
        for text in (row.title, row.sentence, f'<span class="standing">{row.shown}</span>'):
            assert text in listed
            assert text in shown
    assert "<progress" in client.get(rows[0].id).text
    assert "<progress" not in client.get(rows[1].id).text


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
        *(f"{run}/ledger.jsonl", f"{run}/part/", f"{run}/../..", "%00", "follow.js/part"),
    ):
        assert client.get(path).status_code == 404, path


def test_nothing_can_be_changed_and_nothing_is(client: TestClient, root: Path) -> None:
    files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    run = of(root, "go")
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, run).status_code == 405
    head = client.head(run)
    assert (head.status_code, head.content) == (200, b"")
    for path in ("", run, of(root, "statuses"), "part"):
        client.get(path)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == files


def test_a_page_may_load_our_script_and_nothing_else(client: TestClient, root: Path) -> None:
    for path in ("", of(root, "go"), "part", "follow.js", "nothing"):
        headers = client.get(path).headers
        rules = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
        assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
        assert rules["script-src"] == rules["connect-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
    assert client.get(of(root, "go")).text.count("<script") == 1


@pytest.mark.parametrize("name", ["", "go"])
def test_who_has_a_part_already_is_told_so(
    client: TestClient, root: Path, running: list[bytes], name: str
) -> None:
    address = f"{of(root, name)}/part" if name else "part"
    first = client.get(of(root, "statuses")).text
    assert 'data-tag="' in first
    tag = client.get(address.replace(of(root, "go"), of(root, "statuses"))).headers["ETag"]
    again = {"If-None-Match": f'"other", W/{tag}'}
    found = client.get(address.replace(of(root, "go"), of(root, "statuses")), headers=again)
    assert (found.status_code, found.content) == (304, b"")
    before = client.get(address)
    with (root / "phase1/go" / LEDGER).open("ab") as ledger:
        ledger.write(b"".join(running))
    after = client.get(address, headers={"If-None-Match": before.headers["ETag"]})
    assert after.status_code == 200
    assert after.text != before.text


def test_a_page_is_made_anew_when_its_run_has_changed_and_not_too_often(
    client: TestClient,
    root: Path,
    running: list[bytes],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def sections(run: Run) -> tuple[Section, ...]:
        made.append(run.state.records)
        return pages.sections(run)

    monkeypatch.setattr(page, "sections_of", sections)
    address, ledger = of(root, "go"), root / "phase1/go" / LEDGER
    for _ in range(3):
        client.get(address)
    assert made == [40]
    with ledger.open("ab") as file:
        file.write(b"".join(running[:10]))
    client.get(address)
    assert made == [40]  # it goes on: rests a while
    clock.seconds += 60
    client.get(address)
    assert made == [40, 50]
    with ledger.open("ab") as file:
        file.write(b"".join(running[10:]))
    assert "running" not in client.get(address).text.split("</header>")[0]
    client.get(address)
    assert made == [40, 50, 50 + len(running) - 10]  # over: at once


def test_a_process_that_dies_is_noticed_though_its_ledger_stays(
    site: Site, running: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.runs.rows()[0][0].standing == "running"
    monkeypatch.setattr("orchestrator.records.standing.goes_on", lambda state, now: False)
    rows = {row.place: row.standing for row in site.runs.rows()[0]}
    assert rows["phase1/go"] == "interrupted"


def test_a_ledger_that_cannot_be_read_is_shown_as_such_beside_the_others(
    client: TestClient, site: Site, root: Path
) -> None:
    for name, data in (
        ("empty", b""),
        ("torn", b'{"sequence":0'),
        ("damaged", b"{}\n{}\n"),
        ("binary", bytes(range(256)) * 9),
        ("<b>&", b"no\n"),
    ):
        (root / name).mkdir()
        (root / name / LEDGER).write_bytes(data)
    (root / "folder" / LEDGER).mkdir(parents=True)
    (root / "link").mkdir()
    (root / "link" / LEDGER).symlink_to(GOLDEN / "go" / LEDGER)
    rows = {row.place: row for row in site.runs.rows()[0]}
    assert {place for place, row in rows.items() if row.standing == "empty"} == {"empty", "torn"}
    for name in ("damaged", "binary", "<b>&", "folder", "link"):
        assert (rows[name].standing, rows[name].mood) == ("damaged", "trouble")
        assert page.filled("unreadable.html.j2", row=rows[name]) in client.get(rows[name].id).text
    listed = client.get("")
    assert listed.status_code == 200
    assert listed.text.count("<tr class=") == 10
    assert "<b>&" not in listed.text
    shutil.rmtree(root / "damaged")
    assert client.get(rows["damaged"].id).status_code == 404


def test_runs_are_found_where_they_lie_and_nothing_else_is(root: Path, tmp_path: Path) -> None:
    for place in ("a/b/c/d", ".hidden", "phase1/go/eval/x", "old.damaged", "eval"):
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / LEDGER).touch()
    (root / "loop").symlink_to(root)
    found = {str(one.relative_to(root)) for one in directories(root)[0]}
    assert found == {"a/b/c/d", "phase1/go", "phase1/statuses", "phase1/calibration"}
    assert directories(root / "phase1/go")[0] == [root / "phase1/go"]
    runs = [
        {"name": name, "condition": name, "directory": f"../runs/phase1/{name}"}
        for name in ("go", "statuses")
    ]
    (tmp_path / "both").mkdir()
    manifest = orjson.dumps({"name": "both", "kind": "search", "total_runs": 2, "runs": runs})
    (tmp_path / "both/manifest.json").write_bytes(manifest)
    assert {one.name for one in directories(tmp_path / "both")[0]} == {"go", "statuses"}


def test_hostile_text_is_text_in_the_list_and_at_the_head_of_a_page(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "answer_of", lambda run: pages.hostile_answer())
    os.rename(root / "phase1/go", root / "phase1" / pages.HOSTILE.replace("/", "-"))
    (row,) = (row for row in Runs(root).rows()[0] if "script" in row.place)
    for address in ("", row.id):
        text = client.get(address).text
        assert "&lt;script&gt;" in text
        assert text.count("<script") == 1
        assert "\u202e" not in text
        assert "\x1b" not in text


def test_one_run_is_shown_first_where_it_is_served_alone(root: Path) -> None:
    site = Site(Runs(root / "phase1/go"))
    assert site.first == f"{site.home}{identifier(root / 'phase1/go')}"
    assert Site(Runs(root)).first.count("/") == 2
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


@pytest.mark.browser
def test_a_page_is_followed_and_the_reader_stays_where_he_is(
    site: Site, root: Path, running: list[bytes], clock: Clock
) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("no chromium here: apt-get install -y --no-install-recommends chromium")
    with (
        socket.create_server((HOST, 0)) as listener,
        sync_api.sync_playwright() as playwright,
    ):
        server = uvicorn.Server(uvicorn.Config(site.app, log_config=None, lifespan="off"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        browser = playwright.chromium.launch(executable_path=chromium)
        try:
            shown, said = browser.new_page(viewport={"width": 1000, "height": 500}), list[str]()
            shown.on("console", lambda message: said.append(message.text))
            shown.on("pageerror", lambda error: said.append(str(error)))
            number = listener.getsockname()[1]
            shown.goto(f"http://{HOST}:{number}{site.home}{of(root, 'go')}")
            sync_api.expect(shown.locator(".standing").first).to_have_text("running")
            shown.locator("#counted summary").click()
            shown.locator("#same summary").click()
            box = shown.locator("#same .tall")
            box.evaluate("box => box.scrollTop = 300")
            shown.locator("#same").scroll_into_view_if_needed()
            with (root / "phase1/go" / LEDGER).open("ab") as ledger:
                ledger.write(b"".join(running))
            clock.seconds += 60
            sync_api.expect(shown.locator(".standing").first).to_have_text("finished")
            records = 40 + len(running)
            sync_api.expect(shown.locator("#counted summary")).to_have_text(f"{records} records")
            assert shown.locator("details[open]").count() == 2
            assert box.evaluate("box => box.scrollTop") == 300
            assert shown.locator("#counted").count() == 1
            assert said == []
        finally:
            browser.close()
            server.should_exit = True
            thread.join()
