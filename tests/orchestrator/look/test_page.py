"""Blocks as a page: every kind shown, all of it text, and nothing that is loaded or run."""

import base64
import hashlib
import re
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest
from markupsafe import escape

from budgets.formatting import plain, printable
from orchestrator.look import page
from orchestrator.look.page import Answer, Block, Page, Section
from orchestrator.look.plots import Drawing

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

HOSTILE = (
    "'\"><script>window.owned = 1</script><img src=x onerror='a()'>{{7*7}}\u202e\x1b[31m\x07|`"
)
MARKED = plain(HOSTILE)  # the same as a line of Markdown
SVG = "PHN2Zy8+"  # in base64
CANVAS = SimpleNamespace(savefig=lambda file, **_: file.write(b"<svg/>"))
FIELDS = ("title", "sentence", "but", "found", "sure", "cost", "next")


def hostile_answer() -> Answer:
    texts = {field: f"{field} {HOSTILE}" for field in FIELDS}
    return Answer(mood="caution", commands=(HOSTILE, HOSTILE), **texts)


def every_block() -> list[Block]:
    rows: list[dict[str, object]] = [
        {MARKED: MARKED, ">value": 3},
        {MARKED: "b", ">value": "**no**"},
    ]
    return [
        f"`code` and **bold** and {MARKED}",
        page.items([MARKED, "second"]),
        *page.table(MARKED, rows),
        Drawing("scores", HOSTILE, HOSTILE, CANVAS),
        page.commands(HOSTILE, "[a](javascript:a())"),
    ]


def every_section() -> tuple[Section, ...]:
    more = Section(f"More {HOSTILE}", [*every_block(), Section("inner", ["deep"])])
    return Section(HOSTILE, every_block()), Section("Second", [more])


@pytest.fixture(scope="module")
def report() -> str:
    return page.page_html(Page(HOSTILE, HOSTILE, hostile_answer(), every_section()))


def test_every_block_is_shown(report: str) -> None:
    assert re.findall(r'<section id="(.*?)"', report) == ["s1", "s2"]
    for part in ("<details>", "<table>", "<ul>", SVG, 'th class="number"'):
        assert report.count(part) == 2, part
    assert report.count("<pre") == 4  # two of the answer, one a fence
    for part in ("<code>code</code>", "<strong>bold</strong>", "<strong>no</strong>", "<p>deep"):
        assert part in report


def test_hostile_text_is_text_wherever_it_stands(report: str) -> None:
    assert not re.search(r"<(script|iframe|object)|<[^>]* (on\w+|style)=", report)
    assert not re.search('<img (?!src="data:)', report)
    assert not STEERING.search(unescape(report))
    for field in FIELDS:
        assert f"{field} " + escape(printable(HOSTILE)) in report
    assert report.count(escape("<script>window.owned = 1</script>")) > 25
    assert "{{7*7}}" in report


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(report: str) -> None:
    (sheet,) = re.findall(r"<style>(.*?)</style>", report, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', report)
    allowed = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
    assert unescape(policy) == f"{allowed}base-uri 'none'; form-action 'none'"
    assert all(one.startswith("data:") for one in re.findall(r'(?:src|href)="(?!#)(.*?)"', report))


def test_a_block_or_a_field_that_nothing_shows_is_an_error() -> None:
    quote: Any = SimpleNamespace(text="important")
    odd = Section("Odd", [quote])
    with pytest.raises(TypeError, match="SimpleNamespace"):
        page.page_html(Page("run", "", hostile_answer(), [odd]))
    with pytest.raises(Exception, match="not provided"):
        page.template().live(home="/")
