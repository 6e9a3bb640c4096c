"""The report and the served pages, as a browser shows them, and what a server lets out."""

import http.client
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.acceptance.books import renamed
from tests.acceptance.product import Product, wait_until

WAITS = """
import pathlib, time
def until_told(knobs, seed, budget):
    while not pathlib.Path(__file__).with_name("told").exists():
        time.sleep(0.02)
    return knobs["x"]
"""
CONFIG = """
objective = "python:{function}"
[training]
directory = "."
knobs.{knob} = {{ min = 0.0, max = 1.0, baseline = 0.5 }}
"""
WIDTH, HEIGHT = 1280, 800
CHROMIUM = shutil.which("chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
RUNS = ["go_fades", "no_go_noise", "statuses", "interrupted", "campaign", "space_check"]

HOSTILE = "'\"><script>window.owned = 1</script><img onerror='a()'>\u202e\u2066\x1b[31m\x07\x9b|`"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

ANSWER = """word => {
    const heading = [...document.querySelectorAll("h1, h2, h3, dt, th, b, strong")]
        .find(element => element.textContent.trim() === word);
    const answer = heading.parentElement, command = answer.querySelector("pre") ?? answer;
    return [command.getBoundingClientRect().bottom, answer.textContent.length - word.length];
}"""
"""How far down the answer under a heading, or its first command, reaches, and how long it is."""

HARM = """() => [
    window.owned ?? "nothing",
    document.querySelectorAll("script:not([src]), [onerror], [onload], iframe, object").length,
    document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth,
]"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        missing = "no chromium here: apt-get install -y --no-install-recommends chromium"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """The page there: it asks nobody else for anything, complains of nothing, is not too wide."""
    requests, complaints = [], []
    with browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}) as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        yield page
        assert page.evaluate(HARM) == ["nothing", 0, 0]
    own = url if url.startswith("file:") else f"http://{urlsplit(url).netloc}/"
    assert [request for request in requests if not request.startswith(own)] == []
    assert complaints == []


def assert_answered(page: Page) -> None:
    """The four questions of a reader have an answer on the first screen."""
    for word in ("Found", "How sure", "Cost", "Next"):
        lowest, length = page.evaluate(ANSWER, word)
        assert lowest <= HEIGHT, word
        assert length > 10, word


def report(user: Product, run: str) -> str:
    """The address of a run's report."""
    user("report", run, "--html", "--out", f"{run}.html")
    return (user.folder / f"{run}.html").as_uri()


@dataclass
class Site:
    """What `serve` shows of a user's runs."""

    url: str
    pid: int

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def page_of(self, run: str = "") -> str:
        """The address of the first run in the list, or of that one."""
        links: list[tuple[str, str]] = re.findall(r'href="/([^"]+)"[^>]*>(.*?)</a>', self.ask()[1])
        return self.url + next(address for address, name in links if run in name)


def serve(user: Product) -> Site:
    process = user.start("serve", "--port", "0", "--json")
    assert process.stdout is not None
    told = ""
    while not told.endswith("}\n"):
        told += process.stdout.readline()
    announced = json.loads(told)
    return Site(announced["url"], announced["pid"])


@pytest.mark.browser
@pytest.mark.parametrize("run", RUNS)
def test_a_report_answers_four_questions_on_its_first_screen_and_asks_nobody(
    looker: Product, browser: Browser, run: str
) -> None:
    with opened(browser, report(looker, run)) as page:
        assert_answered(page)
        assert page.locator("script").count() == 0


@pytest.mark.browser
def test_a_served_page_answers_them_too(looker: Product, browser: Browser) -> None:
    with opened(browser, serve(looker).page_of("go")) as page:
        assert_answered(page)


@pytest.mark.browser
def test_text_of_others_is_shown_as_text(product: Product, browser: Browser) -> None:
    run = product.stored("statuses")
    names = {"statuses": HOSTILE, "python:rude": HOSTILE, "MemoryError": HOSTILE}
    renamed(run, names)
    for command in ("status", "report", "report --md --out -", "best", "explain", "verify"):
        done = product(*command.split(), "statuses", code=None)
        assert done.code != 1, done
        assert STEERING.findall(done.text) == [], command
    markdown = product("report", "statuses", "--md", "--out", "-").out
    assert "<script" not in markdown.replace("\\<", "")
    with opened(browser, report(product, "statuses")) as page:
        assert page.locator("body").inner_text().count("<script>window.owned = 1</script>") > 2
    site = serve(product)
    for url in (site.url, site.page_of()):
        with opened(browser, url) as page:
            expect(page.locator("body")).to_contain_text("<script>window.owned = 1</script>")


def test_a_knob_cannot_have_a_hostile_name(product: Product) -> None:
    config = CONFIG.format(function="waits:until_told", knob=json.dumps(HOSTILE))
    told = product("phase1", "--config", product.write("bad.toml", config), code=2)
    assert STEERING.findall(told.text) == []


@pytest.mark.browser
def test_a_run_that_goes_on_is_followed_to_its_end(product: Product, browser: Browser) -> None:
    product.write("waits.py", WAITS)
    product.write("live.toml", CONFIG.format(function="waits:until_told", knob="x"))
    words = ("phase1", "--config", "live.toml", "--tier", "min", "--assume-eval-seconds", "1")
    running = product.start(*words, "--run-id", "live", "--executor", "local", "--workers", 1)
    wait_until(lambda: any(product.folder.glob("**/started.json")) or running.poll() is not None)
    with opened(browser, serve(product).page_of("live")) as page:
        standing = page.locator(".standing").first
        expect(standing).to_have_text("running")
        product.write("told", "")
        expect(standing).to_have_text("finished")
    product.verify("live")


def test_a_server_is_for_its_own_machine_and_changes_nothing(looker: Product) -> None:
    files = {p: p.read_bytes() for p in looker.folder.rglob("*") if p.is_file()}
    site = serve(looker)
    listening = psutil.Process(site.pid).net_connections(kind="inet")
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}
    for run in ("go", "no_go_noise", "interrupted"):
        path = urlsplit(site.page_of(run)).path
        assert site.ask(path)[0] == 200
        assert site.ask(path, Host="evil.example")[0] >= 400
        assert all(site.ask(path, method)[0] >= 400 for method in ("POST", "PUT", "DELETE"))
    for path in ("/../ledger.jsonl", "/go/ledger.jsonl", "/nothing", "//evil.example"):
        assert site.ask(path)[0] >= 400
    assert {p: p.read_bytes() for p in looker.folder.rglob("*") if p.is_file()} == files
