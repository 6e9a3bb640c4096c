"""What a person sees of a run: pages, as text and as commands to copy."""

import html
import json
import re
import shlex
import urllib.request
from urllib.parse import urljoin

from tests.acceptance.product import PROGRAM, Product


def served(product: Product, run_id: str) -> tuple[str, str]:
    """The list of runs and the run's page, as `serve` sends them."""
    process = product.start("serve", "--port", "0", "--json")
    assert process.stdout is not None
    document = "".join(iter(process.stdout.readline, "}\n"))
    url, pages = json.loads(f"{document}}}")["url"].rstrip("/"), [""]
    for place in ("^()", rf'href="(/[^"]+)"><bdi>{run_id}</bdi>'):
        (path,) = re.findall(place, pages[-1])
        with urllib.request.urlopen(urljoin(url, path), timeout=60) as answer:  # noqa: S310 - our own
            pages.append(answer.read().decode())
    return pages[1], pages[2]


def page_of(product: Product, run_id: str) -> str:
    return product("report", run_id, "--html", "--out", "-").out


def plain(page: str) -> str:
    """A page's text."""
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def commands_in(text: str) -> list[list[str]]:
    """Whole lines that are commands of the product, as a shell splits them."""
    lines = re.findall(rf"^\s*{PROGRAM} (.+)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def commands_on(page: str) -> list[list[str]]:
    found = re.findall(r'<pre class="command">(.*?)</pre>', page, re.DOTALL)
    return commands_in("\n".join(map(plain, found)))
