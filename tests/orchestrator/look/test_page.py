"""Blocks as a page: every kind shown, all of it text, and nothing that is loaded or run."""

import base64
import hashlib
import re
from dataclasses import dataclass
from html import unescape
from typing import cast

import pytest
from markupsafe import escape

from budgets.formatting import printable
from orchestrator.look import page
from orchestrator.look.page import Block, Page, Section
from tests.orchestrator.look.pages import FIELDS, HOSTILE, SVG, every_section, hostile_answer

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def report() -> str:
    return page.page_html(Page(HOSTILE, HOSTILE, hostile_answer(), every_section()))


def test_every_block_is_shown(report: str) -> None:
    assert re.findall(r'<section id="(.*?)"', report) == ["s1", "s2"]
    for part in ("<details>", "<table>", "<ul>", SVG, 'th class="number"'):
        assert report.count(part) == 2, part
    assert report.count("<pre") == 4  # two of the answer, one a fence
    for part in (
        "<code>code</code>",
        "<strong>bold</strong>",
        "<strong>no</strong>",
        "<p>deep",
    ):
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
    @dataclass
    class Quote:
        text: str

    odd = Section("Odd", [cast("Block", Quote("important"))])
    with pytest.raises(TypeError, match="Quote"):
        page.page_html(Page("run", "", hostile_answer(), [odd]))
    with pytest.raises(Exception, match="not provided"):
        page.template().live(home="/")
