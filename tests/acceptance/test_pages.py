"""The report and the served pages, as a browser shows them, and what a server lets out."""

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urljoin, urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.acceptance.books import records, renamed
from tests.acceptance.product import Product, wait_until

SCRIPT = "<script>window.owned = 1</script>"
HOSTILE = f"'\">{SCRIPT}<img onerror='a()'>\u202e\u2066\x1b[31m\x07\x9b|`"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SLOW = "phase1 --tier min --objective sphere --set seconds=0.1 --assume-eval-seconds 1 --workers 1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if (chromium := shutil.which("chromium")) is None:
        missing = "no chromium here: apt-get install -y --no-install-recommends chromium"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium)


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """The page there: it asks nobody else for anything, complains of nothing, is not too wide."""
    seen: list[str] = []
    with browser.new_page(viewport={"width": 1280, "height": 800}) as page:
        page.on("request", lambda request: seen.append(request.url))
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.goto(url)
        yield page
        harmful = "script:not([src]), [onerror], [onload], iframe, object"
        expect(page.locator(harmful)).to_have_count(0)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 1280
    own = url if url.startswith("file:") else url.rsplit("/", 1)[0]
    assert [one for one in seen if not one.startswith(own)] == []


def assert_answered(page: Page) -> None:
    """The four questions of a reader have an answer on the first screen."""
    for word in ("Found", "How sure", "Cost", "Next"):
        answer = page.get_by_text(word, exact=True).first.locator("..")
        command = answer.locator("pre")
        expect(command.first if command.count() else answer).to_be_in_viewport(ratio=1)
        assert len(answer.inner_text()) > len(word) + 10


def ask(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request(method, urlsplit(url).path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def serve(user: Product) -> tuple[str, str, int]:
    """Where a user's runs are listed, and the first one is shown, and by which process."""
    process = user.start("serve", "--port", "0", "--json")
    assert process.stdout is not None
    announced = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
    site: str = announced["url"]
    first = re.findall(r'<a href="(/[^"]+)"', ask(site)[1])[0]
    return site, urljoin(site, first), announced["pid"]


@pytest.mark.browser
@pytest.mark.parametrize("run", ["go_fades", "no_go_noise", "statuses", "campaign", "space_check"])
def test_a_report_answers_four_questions_on_its_first_screen_and_asks_nobody(
    looker: Product, browser: Browser, run: str
) -> None:
    looker("report", run, "--html", "--out", "run.html")
    with opened(browser, (looker.folder / "run.html").as_uri()) as page:
        assert_answered(page)
        assert page.locator("script").count() == 0


@pytest.mark.browser
def test_a_run_that_goes_on_is_followed_to_its_end(product: Product, browser: Browser) -> None:
    running = product.start(*SLOW.split(), "--executor", "inline", "--run-id", "live")
    wait_until(lambda: records(product.folder / "artifacts/cmaes/phase1/live") > 3)
    running.send_signal(signal.SIGSTOP)
    with opened(browser, serve(product)[1]) as page:
        expect(page.locator(".standing").first).to_have_text("running")
        running.send_signal(signal.SIGCONT)
        expect(page.locator(".standing").first).to_have_text("finished")
        assert_answered(page)
    product.verify("live")


@pytest.mark.browser
def test_text_of_others_is_shown_as_text(product: Product, browser: Browser) -> None:
    names = dict.fromkeys(["statuses", "python:rude", "MemoryError"], HOSTILE)
    renamed(product.stored("statuses"), names)
    knobs = json.dumps({HOSTILE: {"min": 0, "max": 1, "baseline": 0.5}})
    texts = [product("plan", "--objective=python:a:f", f"--set=knobs={knobs}", code=2)]
    commands = ["status", "best", "explain", "verify", "report", "report --html --out run.html"]
    texts += [product(*command.split(), "statuses", code=None) for command in commands]
    texts.append(product("report", "statuses", "--md", "--out", "-"))
    assert [done for done in texts if done.code == 1 or STEERING.search(done.text)] == []
    outside = re.sub(r"```.*?```", "", texts[-1].out, flags=re.DOTALL)  # code is shown as it is
    assert "<script" not in outside.replace("\\<", "")
    site, run, _ = serve(product)
    for url in (product.folder.joinpath("run.html").as_uri(), site, run):
        with opened(browser, url) as page:
            expect(page.locator("body")).to_contain_text(SCRIPT)


def test_a_server_is_for_its_own_machine_and_changes_nothing(looker: Product) -> None:
    files = {p: p.read_bytes() for p in looker.folder.rglob("*") if p.is_file()}
    site, run, pid = serve(looker)
    listening = psutil.Process(pid).net_connections(kind="inet")
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}
    assert ask(run)[0] == 200
    paths = ("../ledger.jsonl", "go/ledger.jsonl", "/evil.example")
    refused = [ask(run, Host="evil.example"), *(ask(site + path) for path in paths)]
    refused += [ask(run, method) for method in ("POST", "PUT", "DELETE")]
    assert all(status >= 400 for status, _ in refused)
    assert {p: p.read_bytes() for p in looker.folder.rglob("*") if p.is_file()} == files
