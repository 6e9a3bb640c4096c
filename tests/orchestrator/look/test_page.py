"""Blocks as a page: every kind shown, all of it text, and nothing that is loaded or run."""

import base64
import hashlib
import re
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import pytest

from orchestrator.look import page
from orchestrator.look.blocks import Block, Section
from tests.orchestrator.look.pages import HOSTILE, SHOWN, SVG, every_section, hostile_answer

VOID = {"meta", "link", "br", "img", "hr", "input"}
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Reader(HTMLParser):
    """What a browser makes of a page. Raises AssertionError where an element is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def report() -> str:
    return page.page(page.Header(HOSTILE, HOSTILE), hostile_answer(), every_section())


def test_every_block_is_shown(report: str) -> None:
    read = Reader(report)
    text = "".join(read.texts)
    for said in ("code", "bold", "second", "caption", "deep", "inner", "no", "    last"):
        assert said in text
    ids = [value for name, value in read.attributes if name == "id"]
    assert {"answer", "contents", "first", "second"} <= set(ids)
    assert read.tags.count("details") == 2
    assert read.tags.count("figure") == 4
    assert read.tags.count("table") == 3
    assert report.count(SVG) == 2
    assert {"h1", "h2", "h3", "ul", "pre", "code", "strong", "summary"} <= set(read.tags)


def test_hostile_text_is_text_wherever_it_stands(report: str) -> None:
    read = Reader(report)
    assert not {"script", "img", "iframe", "object"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name == "style"]
    assert not STEERING.search(unescape(report))
    shown = "".join(read.texts)
    answer = hostile_answer()
    for field in ("title", "sentence", "but", "meaning", "luck", "found", "sure", "cost", "next"):
        assert f"{field} '\"><script>" in shown
        assert getattr(answer, field).startswith(field)
    assert shown.count(SHOWN) > 25
    assert "{{7*7}}" in shown


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(report: str) -> None:
    (sheet,) = re.findall(r"<style>(.*?)</style>", report, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', report)
    rules = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert re.findall(r'(?:src|href)="(?!#)([^"]*)"', report) == ["data:,"]


def test_a_block_or_a_field_that_nothing_shows_is_an_error() -> None:
    @dataclass
    class Quote:
        text: str

    odd = Section("odd", "Odd", [cast("Block", Quote("important"))])
    with pytest.raises(TypeError, match="Quote"):
        page.page(page.Header("run", ""), hostile_answer(), [odd])
    with pytest.raises(Exception, match="undefined"):
        page.filled("live.html.j2", home="/")


def test_a_page_about_something_else_than_a_run(report: str) -> None:
    text = page.plain_page(page.Header(HOSTILE, "two runs"), HOSTILE, HOSTILE, every_section())
    read = Reader(text)
    assert "script" not in read.tags
    assert text.count("<section id=") == report.count("<section id=") == 2


def test_text_is_cut_where_nobody_would_read_on() -> None:
    answer = hostile_answer()
    text = page.page(page.Header("x" * 10**6, ""), answer, [Section("s", "y" * 10**6, [])])
    assert len(text) < 100_000


def test_a_page_is_never_written_through_a_link(tmp_path: Path) -> None:
    place = page.own_place(tmp_path, "report.html")
    place.touch()
    link = tmp_path / "link.html"
    link.symlink_to(place)
    for path in (link, tmp_path, tmp_path / "none/report.html", tmp_path / "report.txt"):
        with pytest.raises(ValueError, match=r"--out|plain"):
            page.named_place(path, "html")
    elsewhere = tmp_path / "run"
    elsewhere.mkdir()
    (elsewhere / "reports").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="symbolic link"):
        page.own_place(elsewhere, "report.html")
