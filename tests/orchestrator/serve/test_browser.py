"""The pages as a browser shows them: Debian's chromium without a window, driven by playwright."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from orchestrator.report import page as report_page
from orchestrator.report.collect import report
from orchestrator.serve.handler import Limits

if TYPE_CHECKING:
    from tests.conftest import Cli
    from tests.orchestrator.serve.conftest import Growing, Site

pytestmark = pytest.mark.browser

Grow = Callable[..., "Growing"]

PATIENCE_MS = 30_000

MISSING = "no chromium here: apt-get install -y --no-install-recommends chromium"

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)

NOTE_VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI));
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Tab:
    """A page in a browser of its own, and everything that went wrong in it."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        self.complaints.append(message.text)

    def until(self, text: str, where: str = "body") -> None:
        """Wait for the text, which the page may ask for at once."""
        self.page.wait_for_function(
            """([where, text]) => {
                dispatchEvent(new Event("online"));
                return document.querySelector(where).innerText.includes(text);
            }""",
            arg=[where, text],
            polling=50,
        )

    def look(self) -> None:
        """Let the page ask, and show what it is told."""
        for _ in range(3):
            with self.page.expect_response("**/state"):
                self.page.evaluate("dispatchEvent(new Event('online'))")

    def violations(self) -> list[str]:
        found: list[str] = self.page.evaluate("window.violations")
        return found

    @property
    def overhang(self) -> int:
        """Pixels that the page is wider than its window."""
        wide = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
        pixels: int = self.page.evaluate(wide)
        return pixels


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Tab]:
    """A tab in which nothing may go wrong."""
    with browser.new_context(**options) as context:
        context.add_init_script(NOTE_VIOLATIONS)
        tab = Tab(context.new_page())
        tab.page.on("console", tab.hear)
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        yield tab
        assert tab.complaints == []
        assert tab.violations() == []


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with opened(browser) as found:
        yield found


def test_the_list_loads_and_leads_to_a_run(
    tab: Tab, site: "Site", grow: Grow, confirmed_run: Path
) -> None:
    grow("over", of=confirmed_run).finish()
    grow("going", records=12)
    tab.page.goto(site.url)
    expect(tab.page.locator("table.runs tbody tr")).to_have_count(2)
    expect(tab.page.locator("#running .standing")).to_have_text("running")
    tab.page.locator("#runs a").click()
    expect(tab.page.locator("main h1")).to_have_text("Go; persistence not shown")
    expect(tab.page.locator("main .sentence")).to_contain_text("On 2 fresh seeds the search's")
    assert {url.removeprefix(site.url).split("/")[-1] for url in tab.requests} >= {"follow.js"}
    assert all(url.startswith(site.url) for url in tab.requests)


def test_the_list_follows_a_run_and_finds_a_new_one(tab: Tab, site: "Site", grow: Grow) -> None:
    tab.page.goto(site.url)
    expect(tab.page.locator("main")).to_contain_text("one that begins appears by itself")
    run = grow()
    run.write_until("settled")
    tab.until("0 of 2 generations", "main")
    bar = tab.page.locator("#running progress")
    before = float(bar.get_attribute("value") or 0)
    run.write_until("generation_told")
    tab.until("1 of 2 generations finished", "main")
    assert float(bar.evaluate("bar => bar.value")) > before
    run.finish()
    tab.until("The plumbing works", "main")


def test_a_runs_page_follows_it_to_its_end(
    tab: Tab, site: "Site", grow: Grow, confirmed_run: Path
) -> None:
    run = grow(of=confirmed_run)
    run.write_until("settled")
    tab.page.goto(site.url + site.address("growing"))
    tab.until("generation 0 (1 of 2)", ".live dl")
    tab.until("1 ok", ".live dl")
    expect(tab.page.locator("main h1")).to_contain_text("In progress")
    run.write_until("settled")
    tab.until("2 ok", ".live dl")
    run.write_until("generation_told")
    tab.until("1 of 2 generations finished", "main")
    assert tab.page.title() == "11% confirmed"
    run.finish()
    tab.until("Go; persistence not shown", "main h1")
    expect(tab.page.locator(".live dl")).to_have_count(0)
    expect(tab.page.locator(".live .standing")).to_have_text("Go; persistence not shown")


def test_a_report_that_comes_anew_leaves_the_reader_where_he_is(
    tab: Tab, site: "Site", grow: Grow, confirmed_run: Path
) -> None:
    run = grow(of=confirmed_run)
    run.write_until("generation_told")
    tab.page.goto(site.url + site.address("growing"))
    tab.until("1 of 2 generations finished", "main")
    tab.page.locator("main nav a").nth(2).focus()
    tab.page.evaluate("document.getElementById('knobs').scrollIntoView()")
    link, top = tab.page.evaluate(PLACE)
    run.finish()
    tab.until("Go; persistence not shown", "main h1")
    after = tab.page.evaluate(PLACE)
    assert after[0] == link
    assert after[1] == pytest.approx(top, abs=2)


PLACE = """() => [
    document.activeElement.getAttribute("href"),
    document.getElementById("knobs").getBoundingClientRect().top,
]"""


def test_what_is_selected_is_not_taken_away(tab: Tab, site: "Site", grow: Grow) -> None:
    run = grow(records=12)
    tab.page.goto(site.url + site.address("growing"))
    tab.until("In progress", "main h1")
    tab.page.evaluate("getSelection().selectAllChildren(document.querySelector('main h1'))")
    run.finish()
    tab.until("finished", ".live .standing")
    site.routes.settle(10.0)
    tab.look()
    assert tab.page.locator("main h1").inner_text() == "In progress"
    tab.page.evaluate("getSelection().empty()")
    tab.until("Smoke test", "main")


def test_what_is_selected_in_the_head_stays_while_its_clocks_go_on(
    tab: Tab, site: "Site", grow: Grow
) -> None:
    run = grow()
    run.write_until("settled")
    tab.page.goto(site.url + site.address("growing"))
    tab.until("1 nan", ".live dl")
    tab.page.evaluate("getSelection().selectAllChildren(document.querySelector('.live dl'))")
    selected, clock = tab.page.evaluate(SELECTED), tab.page.locator("header time").first
    said = clock.inner_text()
    run.write_until("settled")
    tab.look()
    expect(clock).not_to_have_text(said)
    assert tab.page.evaluate(SELECTED) == selected
    tab.page.evaluate("getSelection().empty()")
    tab.until("1 ok", ".live dl")
    expect(tab.page.locator("[data-looked]")).to_contain_text("as of ")
    tab.page.route("**/state", lambda route: None)  # no answer comes any more
    with tab.page.expect_request("**/state"):
        said = clock.inner_text()
    expect(clock).not_to_have_text(said)


SELECTED = "String(getSelection())"


def test_a_link_in_focus_and_one_that_is_pressed_stay_so_while_the_run_goes_on(
    tab: Tab, site: "Site", grow: Grow
) -> None:
    run = grow()
    run.write_until("settled")
    tab.page.goto(site.url)
    link = tab.page.locator("#running a")
    link.focus()
    run.write_until("generation_told")
    tab.until("1 of 2 generations finished", "main")
    expect(link).to_be_focused()
    link.hover()
    tab.page.mouse.down()
    run.write_until("settled")
    tab.look()
    tab.page.mouse.up()
    expect(tab.page.locator("main h1")).to_contain_text("In progress")


def test_a_run_that_ends_stays_in_the_list_while_other_text_of_it_is_selected(
    tab: Tab, site: "Site", grow: Grow
) -> None:
    grow("over").finish()
    going, ending = grow("going", records=12), grow("ending", records=12)
    tab.page.goto(site.url)
    tab.until("2 running", "header")
    tab.page.evaluate("getSelection().selectAllChildren(document.querySelector('#runs h2'))")
    ending.finish()
    tab.until("1 running", "header")
    tab.look()
    assert tab.page.locator("main tbody tr").count() == 3
    tab.page.evaluate("getSelection().empty()")
    expect(tab.page.locator("#runs tbody tr")).to_have_count(2)
    going.finish()
    tab.until("3 runs.", "header")
    expect(tab.page.locator("#running")).to_have_count(0)


def test_a_head_that_grows_leaves_the_report_and_its_own_tables_where_they_are(
    tab: Tab, site: "Site", grow: Grow, confirmed_run: Path
) -> None:
    run = grow(of=confirmed_run)
    run.write_until("reserved")
    tab.page.set_viewport_size({"width": 320, "height": 740})
    tab.page.goto(site.url + site.address("growing"))
    tab.until("0 ok", ".live dl")
    tab.page.evaluate("document.getElementById('now-budget').scrollLeft = 15")
    tab.page.evaluate("document.getElementById('knobs').scrollIntoView()")
    before, (_, top) = tab.page.evaluate(HEIGHT), tab.page.evaluate(PLACE)
    run.write_until("settled")
    tab.until("1 ok", ".live dl")
    tab.page.wait_for_function("() => new Promise(requestAnimationFrame)")
    assert tab.page.evaluate(HEIGHT) > before
    assert tab.page.evaluate(PLACE)[1] == pytest.approx(top, abs=2)
    assert tab.page.evaluate("document.getElementById('now-budget').scrollLeft") == 15


HEIGHT = "document.querySelector('header').offsetHeight"


def test_hostile_text_is_text(tab: Tab, site: "Site", hostile: Path) -> None:
    tab.page.goto(site.url)
    link = tab.page.locator("#runs a")
    assert "<script>window.owned = 1</script><img src=x" in link.inner_text()
    link.click()
    expect(tab.page.locator("main .run")).to_contain_text("<script>window.owned = 1</script>")
    assert "<img src=x onerror=" in tab.page.locator("#failures").inner_text()
    assert "<script>window.owned" in tab.page.title()
    assert tab.page.evaluate("window.owned") is None
    assert tab.page.locator("main img, main script, header img, header script").count() == 0


def test_hostile_text_is_text_when_it_comes_later(
    tab: Tab, site: "Site", grow: Grow, hostile: Path, tmp_path: Path
) -> None:
    run = grow("later", of=hostile)
    shutil.rmtree(hostile)
    run.write_until("settled")
    tab.page.goto(site.url + site.address("later"))
    tab.until("1 nan", ".live dl")
    run.finish()
    tab.until("finished", ".live .standing")
    tab.until("<img src=x onerror=", "main")
    assert tab.page.evaluate("window.owned") is None


IS_BACK = """() => {
    dispatchEvent(new Event("online"));
    return document.getElementById("connection").hidden;
}"""


def test_a_server_that_is_gone_is_said_and_one_that_is_back_is_followed(
    browser: Browser, serve: Callable[..., Any], grow: Grow, tmp_path: Path
) -> None:
    run = grow(records=12)
    at_once = Limits(idle_seconds=0.05)  # no connection outlives the server
    with browser.new_context() as context:
        tab = Tab(context.new_page())
        with serve(tmp_path / "runs", limits=at_once) as site:
            tab.page.goto(site.url)
            expect(tab.page.locator("#connection")).to_be_hidden()
        tab.until("The server does not answer", "#connection")
        expect(tab.page.locator("#connection")).to_contain_text("as it was at")
        assert "0 of 2" in tab.page.locator("main").inner_text()
        run.finish()
        with serve(tmp_path / "runs", port=site.server.server_port):
            tab.page.wait_for_function(IS_BACK, polling=50)
            tab.until("The plumbing works", "main")


@pytest.mark.slow
def test_a_server_that_was_killed_is_waited_for(browser: Browser, cli: "Cli", run: Path) -> None:
    with browser.new_context() as context:
        tab = Tab(context.new_page())
        with begun(cli, 0) as port:
            tab.page.goto(f"http://127.0.0.1:{port}/")
            tab.page.wait_for_function(IS_BACK)
        expect(tab.page.locator("#connection")).to_contain_text("Trying again by itself")
        with begun(cli, port):
            expect(tab.page.locator("#connection")).to_be_hidden()


@contextmanager
def begun(cli: "Cli", port: int) -> Iterator[int]:
    """A `serve` in a process of its own, which is killed in the end; its port."""
    process = cli.start("serve", "--port", str(port), "--json")
    assert process.stdout is not None
    text = process.stdout.readline()
    while not text.endswith("}\n") and (line := process.stdout.readline()):
        text += line
    yield json.loads(text)["port"]
    process.kill()
    process.communicate()


def test_a_run_that_vanishes_is_said(browser: Browser, site: "Site", grow: Grow) -> None:
    run = grow(records=12)
    with browser.new_context() as context:
        tab = Tab(context.new_page())
        tab.page.goto(site.url + site.address("growing"))
        shutil.rmtree(run.directory)
        tab.until("no longer there", "#connection")
        run.directory.mkdir()
        run.written = 0
        run.finish()
        tab.until("finished", ".live .standing")
        expect(tab.page.locator("#connection")).to_be_hidden()


def test_without_a_script_the_pages_read_as_well(
    browser: Browser, site: "Site", grow: Grow
) -> None:
    grow(records=12)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(site.url)
        page.locator("#running a").click()
        assert "In progress" in page.locator("main h1").inner_text()
        assert "generation 0 (1 of 2)" in page.locator(".live").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_reports_file_opens_from_disk_and_asks_for_nothing(
    browser: Browser, confirmed_run: Path, tmp_path: Path, scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_page.html(report(confirmed_run)))
    with opened(browser, color_scheme=scheme, offline=True) as tab:
        tab.page.goto(file.as_uri())
        expect(tab.page.locator("h1")).to_contain_text("Go; persistence not shown")
        assert tab.requests == [file.as_uri()]
        paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(", "))) > 384) is (scheme == "light")


@pytest.mark.parametrize("width", [320, 412, 768])
def test_no_page_is_wider_than_a_narrow_screen(
    browser: Browser, site: "Site", grow: Grow, confirmed_run: Path, hostile: Path, width: int
) -> None:
    grow("over", of=confirmed_run).finish()
    grow("going", of=confirmed_run, records=20)
    with opened(browser, viewport={"width": width, "height": 740}) as tab:
        tab.page.goto(site.url)
        assert tab.overhang == 0
        for name in ("over", "going", hostile.name):
            tab.page.goto(site.url + site.address(name))
            tab.until("Provenance", "main")
            assert tab.overhang == 0, name
