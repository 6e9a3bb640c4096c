"""Pages in a browser, from a server, and as text."""

import html
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.product.product import Product, commands_in


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
    """Open a page; check that it loads only its own files, logs nothing, and is not too wide."""
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


def ask(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request(method, urlsplit(url).path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def serve(user: Product, run: str = ".*?") -> tuple[str, str, int]:
    """Start `serve`; return the URLs of the list and of a run, and the pid."""
    process = user.start("serve --port 0 --json")
    assert process.stdout is not None
    announced = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
    site: str = announced["url"]
    page = re.findall(rf'<a href="(/[^"]+)"><bdi>{run}</bdi>', ask(site)[1])[0]
    return site, urljoin(site, page), announced["pid"]


def plain(page: str) -> str:
    """Return a page's text."""
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def commands_on(page: str) -> list[str]:
    found = re.findall(r"<pre(?! class=.log)[^>]*>(.*?)</pre>", page, re.DOTALL)
    return commands_in("\n".join(map(plain, found)))
