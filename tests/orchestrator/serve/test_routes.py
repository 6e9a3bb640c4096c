import re
import shutil
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.report import collect
from orchestrator.report.page import content
from orchestrator.serve.answers import Answer, Request
from orchestrator.serve.catalogue import Catalogue
from orchestrator.serve.routes import Rhythm, Routes
from orchestrator.watch.follow import Follower
from orchestrator.watch.snapshot import Snapshot
from tests.orchestrator.report.test_page import Seen

if TYPE_CHECKING:
    from tests.orchestrator.serve.conftest import Growing

Grow = Callable[..., "Growing"]


@pytest.fixture
def routes(tmp_path: Path) -> Routes:
    (tmp_path / "runs").mkdir(exist_ok=True)
    rhythm = Rhythm(fresh_seconds=0.0, rest_seconds=0.0, first_report_seconds=20.0)
    return Routes(Catalogue(tmp_path / "runs", fresh_seconds=0.0), rhythm=rhythm)


def get(routes: Routes, path: str) -> Answer:
    return routes.answer(Request(path))


def state(routes: Routes, path: str = "") -> dict[str, Any]:
    answer = get(routes, f"{path}/state")
    assert (answer.status, answer.kind) == (HTTPStatus.OK, "application/json")
    found: dict[str, Any] = orjson.loads(answer.body)
    return found


def head(routes: Routes, path: str = "") -> Seen:
    """The head of a page, as its state has it."""
    return Seen(state(routes, path)["parts"]["head"])


def only(routes: Routes) -> str:
    """The address of the one run there is."""
    (run,) = routes.catalogue.runs()
    return f"/{run.id}"


def test_the_list_shows_every_run_and_leads_to_its_page(
    routes: Routes, grow: Grow, confirmed_run: Path
) -> None:
    grow("going", records=12)
    grow("over", of=confirmed_run).finish()
    page = get(routes, "/").body.decode()
    for run in routes.catalogue.runs():
        assert f'href="/{run.id}"' in page
    assert re.findall(r"<h2[^>]*>(\w+)</h2>", page) == ["Running", "Runs"]
    assert "Go; persistence not shown: on 2 fresh seeds" in page
    assert "1 running, 2 in all." in head(routes).words


def test_an_empty_directory_says_that_it_waits(routes: Routes) -> None:
    assert "one that begins appears by itself" in get(routes, "/").body.decode()


def test_a_run_that_goes_on_changes_the_lists_state_and_not_its_content(
    routes: Routes, grow: Grow
) -> None:
    run = grow()
    run.write_until("settled")
    before = state(routes)
    run.write_until("settled")
    after = state(routes)
    assert after["version"] == before["version"]
    (early,), (late,) = (Seen(s["parts"]["running"]).of("progress") for s in (before, after))
    assert float(str(late["value"])) > float(str(early["value"]))
    assert after["parts"]["running"] in get(routes, "/content").body.decode()
    run.finish()
    assert state(routes)["version"] != before["version"]
    assert state(routes)["parts"].keys() == {"head"}


def test_the_same_state_has_the_same_tag_and_another_one_another(
    routes: Routes, grow: Grow
) -> None:
    run = grow(records=12)
    for path in ("", only(routes)):
        get(routes, path or "/")
        first = get(routes, f"{path}/state")
        assert get(routes, f"{path}/state").tag == first.tag
        run.write()
        assert get(routes, f"{path}/state").tag != first.tag


def test_a_runs_page_has_its_report_and_what_it_does_now(routes: Routes, grow: Grow) -> None:
    run = grow()
    run.write_until("settled")
    run.write()
    page = get(routes, only(routes)).body.decode()
    report = content(collect.report(run.directory))
    assert report in page
    words = head(routes, only(routes)).words
    assert "min-sphere-s1 running last record" in words
    assert "Doing generation 0 (1 of 2)" in words
    assert "Evaluations 0 ok, 1 failed (1 nan)," in words


def test_a_page_has_the_head_that_its_state_has_and_says_when_it_was_made(
    routes: Routes, grow: Grow
) -> None:
    grow(records=12)
    for path in ("", only(routes)):
        page = get(routes, path or "/").body.decode()
        page, times = re.subn(r"as of \d\d:\d\d:\d\d", "", page)
        assert state(routes, path)["parts"]["head"] in page
        assert times == 1


def test_a_run_that_is_over_has_no_head_but_its_report(
    routes: Routes, grow: Grow, confirmed_run: Path
) -> None:
    grow(of=confirmed_run).finish()
    own = head(routes, only(routes))
    assert "Go; persistence not shown" in own.words
    assert own.of("dl") + own.of("progress") + own.of("table") == []
    assert state(routes, only(routes))["is_over"] is True
    assert "Go; persistence not shown" in state(routes, only(routes))["title"]


def test_the_report_is_new_when_a_generation_has_closed(routes: Routes, grow: Grow) -> None:
    run = grow(records=12)
    path = only(routes)
    get(routes, path)
    first = state(routes, path)["version"]
    assert first
    run.write_until("settled")
    assert state(routes, path)["version"] == first
    run.write_until("generation_told")
    state(routes, path)
    routes.settle(20.0)
    assert state(routes, path)["version"] not in (first, "")
    answer = get(routes, f"{path}/content")
    assert answer.tag == state(routes, path)["version"]
    assert answer.body.decode() == content(collect.report(run.directory))


def test_a_report_that_takes_long_comes_later(grow: Grow, tmp_path: Path) -> None:
    grow(records=12)
    may_end = Event()

    def build(directory: Path) -> str:
        assert may_end.wait(20)
        return "<p>the report"

    routes = Routes(
        Catalogue(tmp_path / "runs"), build, Rhythm(first_report_seconds=0.01, report_seconds=0.01)
    )
    path = only(routes)
    assert "The report is being made" in get(routes, path).body.decode()
    assert get(routes, f"{path}/content").status == HTTPStatus.SERVICE_UNAVAILABLE
    may_end.set()
    routes.settle(20.0)
    assert get(routes, f"{path}/content").body == b"<p>the report"


def test_readers_within_a_second_cost_one_look(
    grow: Grow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    snapshot = Follower.snapshot

    def noted(follower: Follower, *given: Any) -> Snapshot | None:
        looks.append(given)
        return snapshot(follower, *given)

    monkeypatch.setattr(Follower, "snapshot", noted)
    grow(records=12)
    now = [0.0]
    routes = Routes(Catalogue(tmp_path / "runs", clock=lambda: now[0]), clock=lambda: now[0])
    tags = {get(routes, f"{only(routes)}/state").tag for _ in range(50)}
    assert len(tags) == 1
    assert len(looks) == 1
    now[0] = 1.0
    get(routes, f"{only(routes)}/state")
    assert len(looks) == 2


def test_a_run_that_is_over_is_looked_at_once(
    routes: Routes, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow().finish()
    path = only(routes)
    first = state(routes, path)
    monkeypatch.setattr(Follower, "news", None)
    assert state(routes, path) == first


def test_a_damaged_run_says_on_its_page_what_is_wrong(routes: Routes, grow: Grow) -> None:
    run = grow(records=12)
    path = only(routes)
    get(routes, path)
    before = state(routes, path)["version"]
    ledger = run.directory / LEDGER
    ledger.write_bytes(ledger.read_bytes().replace(b'"sphere"', b'"spherE"', 1))
    page = get(routes, path).body.decode()
    assert "its hash does not follow" in page
    assert "ledger salvage" in page or "begin anew" in page
    assert state(routes, path)["version"] != before
    assert "its hash does not follow" in get(routes, f"{path}/content").body.decode()


def test_a_run_that_vanishes_is_nowhere(routes: Routes, grow: Grow) -> None:
    run = grow(records=12)
    path = only(routes)
    assert get(routes, path).status == HTTPStatus.OK
    shutil.rmtree(run.directory)
    for part in ("", "/state", "/content"):
        assert get(routes, path + part).status == HTTPStatus.NOT_FOUND


def test_a_run_that_is_served_alone_is_where_a_reader_begins(grow: Grow) -> None:
    run = grow(records=12)
    routes = Routes(Catalogue(run.directory))
    assert routes.first() == only(routes)
    answer = get(routes, "/")
    assert (answer.status, answer.location) == (HTTPStatus.FOUND, only(routes))
    assert get(routes, only(routes)).status == HTTPStatus.OK


TRAVERSALS = (
    "/..",
    "/../..",
    "/../../etc/passwd",
    "//etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/phase1",
    "/phase1/growing",
    "/phase1/growing/ledger.jsonl",
    "/ledger.jsonl",
    "/follow.js/",
    "/follow.js/../style.css",
    "/style.css",
    "/templates/style.css",
    "/state/",
    "/0000000000000000",
    "/\x00",
    "",
    "*",
    "http://127.0.0.1/",
)


@pytest.mark.parametrize("path", TRAVERSALS)
def test_nothing_is_found_by_a_path(routes: Routes, grow: Grow, path: str) -> None:
    grow(records=12)
    answer = get(routes, path)
    assert answer.status == HTTPStatus.NOT_FOUND
    assert b"Nothing is here" in answer.body


def test_nothing_is_found_below_a_runs_page(routes: Routes, grow: Grow) -> None:
    grow(records=12)
    for more in ("/", "/ledger.jsonl", "/state/x", "/..", "/eval", "/content/.."):
        assert get(routes, only(routes) + more).status == HTTPStatus.NOT_FOUND


def test_hostile_text_is_escaped_wherever_it_is_shown(routes: Routes, hostile: Path) -> None:
    path = only(routes)
    for where in ("/", "/content", path, f"{path}/content"):
        html = get(routes, where).body.decode()
        assert "&lt;img src=x" in html, where
        assert "<img" not in html, where
        assert "<script>window" not in html, where
        assert "49" not in re.findall(r"\]\]&gt;(.{2})", html), where
        assert "\u202e" not in html, where
    for where in ("", path):
        assert "\u202e" not in get(routes, f"{where}/state").body.decode()
    assert "&lt;img src=x" in state(routes, path)["parts"]["head"]
    assert head(routes, path).of("img") + head(routes, path).of("script") == []


def test_a_name_that_is_no_text_is_shown_all_the_same(routes: Routes, grow: Grow) -> None:
    run = grow("\udcff\udcfe", records=12)
    (run.directory / LEDGER).write_bytes(b"")
    for path in ("/", "/state", only(routes), f"{only(routes)}/state"):
        assert get(routes, path).status == HTTPStatus.OK


def test_a_page_may_run_our_script_alone(routes: Routes, grow: Grow) -> None:
    grow(records=12)
    for path in ("/", only(routes)):
        answer = get(routes, path)
        policy = dict(part.strip().split(" ", 1) for part in answer.policy.split(";"))
        assert policy.keys() == {
            *("default-src", "script-src", "style-src", "connect-src", "img-src"),
            *("frame-ancestors", "base-uri", "form-action"),
        }
        assert policy["default-src"] == "'none'"
        assert (policy["script-src"], policy["connect-src"]) == ("'self'", "'self'")
        assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", policy["style-src"])
        page = answer.body.decode()
        assert re.findall(r"<script[^>]*>", page) == ['<script src="/follow.js" defer>']
        assert not re.search(r"<[^>]+\son\w+=", page)
        assert not re.search(r"<[^>]+\sstyle=", page)


def test_without_a_script_a_page_comes_anew_by_itself(routes: Routes) -> None:
    assert b'<noscript><meta http-equiv="refresh"' in get(routes, "/").body
