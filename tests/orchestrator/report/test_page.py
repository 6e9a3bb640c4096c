"""The page: whole, safe, the same twice, and readable without anything else."""

import base64
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from budgets.blocks import Text
from orchestrator.report.collect import report
from orchestrator.report.contents.blocks import Lead, Section
from orchestrator.report.contents.sections import SECTIONS
from orchestrator.report.model import FailureGroup, Report
from orchestrator.report.page import content, html, of_sections
from orchestrator.report.rendering import policy
from tests.budgets.conftest import Story, told_of
from tests.orchestrator.report.conftest import in_two_knobs, judged, reported

GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.headings: list[int] = []
        self.feed(page)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "elements are nested"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def confirmed_report(confirmed_run: Path) -> Report:
    return report(confirmed_run)


STANDINGS: dict[str, Callable[[], Story]] = {
    "begun": lambda: Story(in_two_knobs()),
    "running": lambda: told_of(in_two_knobs()),
    "go": lambda: judged(winner=GAIN),
    "no go": lambda: judged(winner=8 * (1.01,)),
}


@pytest.mark.parametrize("standing", STANDINGS)
def test_every_section_is_there_with_something_in_it(standing: str) -> None:
    found = Seen(html(reported(STANDINGS[standing]())))
    ids = {attributes.get("id") for attributes in found.of("section")}
    assert {name for name, _, _ in SECTIONS} <= ids
    links = {str(attributes["href"]) for attributes in found.of("a")}
    assert {f"#{name}" for name, _, _ in SECTIONS} <= links


@pytest.mark.parametrize("phase", ["schema_1", "schema_1_check", "schema_4", "schema_5_campaign"])
def test_every_kind_of_run_has_a_page(phase: str) -> None:
    own = report(Path(__file__).parents[2] / "golden" / phase)
    found = Seen(html(own))
    assert own.answer.title in found.words
    assert own.identity.head in found.words


def test_the_verdict_and_the_four_answers_come_first(confirmed_report: Report) -> None:
    own = confirmed_report.answer
    words = Seen(html(confirmed_report)).words
    places = [
        words.index(part) for part in (own.title, own.sentence, own.found, own.sure, own.cost)
    ]
    assert places == sorted(places)
    assert places[-1] < words.index("Every rule and what it sees")
    for line in own.commands:
        assert line in words


def test_headings_are_in_order_and_there_is_one_of_the_first(confirmed_report: Report) -> None:
    levels = Seen(html(confirmed_report)).headings
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_policy_names_the_very_style_that_is_in_the_page(confirmed_report: Report) -> None:
    page = html(confirmed_report)
    (sheet,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    (said,) = [a["content"] for a in Seen(page).of("meta") if "http-equiv" in a]
    assert said is not None
    assert said.startswith(f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:;")
    assert said == policy(sheet)
    assert "unsafe" not in said


def test_nothing_in_it_runs_or_is_fetched(confirmed_report: Report) -> None:
    found = Seen(html(confirmed_report))
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "img", "iframe", "object", "embed", "form", "base", "video"}
    for _, attributes in found.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("href", "src", "xlink:href", "action"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("#", "data:,")), value
    assert "url(http" not in html(confirmed_report)
    assert "@import" not in html(confirmed_report)


def test_the_same_ledger_gives_the_same_bytes(confirmed_run: Path) -> None:
    assert html(report(confirmed_run)) == html(report(confirmed_run))


def test_the_content_is_what_is_inside_the_main_part(confirmed_report: Report) -> None:
    page, inside = html(confirmed_report), content(confirmed_report)
    (main,) = re.findall(r"<main[^>]*>(.*)</main>", page, re.DOTALL)
    assert main.strip() == inside.strip()
    assert "<html" not in inside


def test_every_table_has_a_caption_heads_and_rows_of_one_width(confirmed_report: Report) -> None:
    page = html(confirmed_report)
    tables = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    assert len(tables) > 8
    for table in tables:
        assert "<caption>" in table
        heads = table.count('scope="col"')
        for row in re.findall(r"<tr>.*?</tr>", table.partition("<tbody>")[2], re.DOTALL):
            assert row.count("<td") + row.count('scope="row"') == heads


def test_every_plot_is_described_and_titled(confirmed_report: Report) -> None:
    page = html(confirmed_report)
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(figures) > 5
    for figure in figures:
        assert re.search(r"<figcaption><b>[^<]+</b>", figure)
        assert 'role="img"' in figure
        assert re.search(r"<desc[^>]*>[^<]+</desc>", figure)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_what_is_paused_looks_otherwise_also_without_colours() -> None:
    icons = set()
    for standing in ("running", "go", "no go"):
        page = html(reported(STANDINGS[standing]()))
        icons.add(re.findall(r'<svg class="icon".*?</svg>', page, re.DOTALL)[0])
    assert len(icons) == 3


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]></svg><svg onload=alert(1)>",
    "</style></title></main>",
    "{{ 7 * 7 }}{% raw %}",
    "a|b`c`**d**[e](javascript:f)",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe\x00\x1b[2J",
    "-" * 3000,
)


def rude(own: Report, text: str) -> Report:
    """The report with that text wherever text comes from elsewhere."""
    group = FailureGroup(
        whose="configuration", what=text, attempts=3, final=2, places=(text,),
        example=text, log=(text, text), log_from="stderr.txt",
    )  # fmt: skip
    changed = {"cause": text, "device": text, "arm": text, "status": "error", "score": None}
    evaluations = [own.evaluations[0].model_copy(update=changed), *own.evaluations[1:]]
    parts: dict[str, Any] = {
        "identity": own.identity.model_copy(update={"run_id": text, "objective": text}),
        "answer": own.answer.model_copy(
            update={"sentence": text, "found": text, "next": text, "commands": (text,)}
        ),
        "budget": own.budget.model_copy(
            update={"sentence": text, "triggers": (text,), "withdrawn": (text,), "follows": text}
        ),
        "evaluations": tuple(evaluations),
        "failures": (group,),
        "provenance": own.provenance.model_copy(
            update={"settings": {text: text}, "versions": {text: text}, "commands": (text,)}
        ),
        "no_curves": text,
        "curves": (),
    }
    return own.model_copy(update=parts)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_anywhere_stays_text(confirmed_report: Report, text: str) -> None:
    calm, page = html(confirmed_report), html(rude(confirmed_report, text))
    found = Seen(page)
    allowed = {tag for tag, _ in Seen(calm).tags} | {"pre", "h3", "code", "pattern", "text"}
    assert {tag for tag, _ in found.tags} <= allowed
    assert not any(name.startswith("on") or name == "style" for _, a in found.tags for name in a)
    assert "\x00" not in page
    assert "\x1b" not in page
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page
    (main,) = re.findall(r"<main[^>]*>(.*)</main>", page, re.DOTALL)
    assert Seen(main).headings[0] == 1


def test_a_log_of_one_line_of_ten_megabytes_leaves_a_small_page(confirmed_report: Report) -> None:
    own = rude(confirmed_report, "x" * 100_000)
    endless = own.failures[0].model_copy(update={"log": ("x" * 10_000_000,)})
    page = html(own.model_copy(update={"failures": (endless,)}))
    assert len(page.encode()) < 2_000_000


def test_a_page_about_something_else_has_the_same_looks() -> None:
    lead = Lead(name="a & b", about="two runs", heading="Compared", sentence="One is better.")
    page = of_sections(lead, [Section("one", "One", [Text("It is `so`.")])])
    found = Seen(page)
    assert found.headings == [1, 2]
    assert "a & b" in found.words
    assert "<code>so</code>" in page
