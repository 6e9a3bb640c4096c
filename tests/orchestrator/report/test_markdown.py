"""The same content as Markdown, for a mail."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from budgets.blocks import Items, Met, Table, Text
from orchestrator.report.collect import report
from orchestrator.report.contents.blocks import Commands, Lead, Log, Ruler, Section
from orchestrator.report.contents.sections import SECTIONS
from orchestrator.report.markdown import lines_of, markdown, of_sections
from orchestrator.report.model import Report
from orchestrator.report.plots import plots
from tests.orchestrator.report.conftest import reported
from tests.orchestrator.report.test_page import HOSTILE, STANDINGS, rude


@pytest.fixture(scope="module")
def confirmed_report(confirmed_run: Path) -> Report:
    return report(confirmed_run)


def rendered(text: str) -> str:
    """As a reader with raw HTML allowed would show it: what is escaped stays text even there."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def test_the_sections_of_the_page_come_in_their_order(confirmed_report: Report) -> None:
    text = markdown(confirmed_report, plots(confirmed_report))
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [title for _, title, _ in SECTIONS]
    assert text.startswith("# confirmed: Go; persistence not shown\n")


def test_every_plot_is_there_in_words(confirmed_report: Report) -> None:
    own = plots(confirmed_report)
    text = markdown(confirmed_report, own)
    assert len(own) > 5
    for plot in own:
        assert f"*{plot.title}" in text.replace("\\", "")


def test_tables_are_tables_to_a_reader_of_markdown(confirmed_report: Report) -> None:
    page = rendered(markdown(confirmed_report, ()))
    rows = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    assert page.count("<table>") > 8
    assert len(rows) > 40
    assert "|--" not in page


@pytest.mark.parametrize("standing", STANDINGS)
def test_every_standing_is_written(standing: str) -> None:
    own = reported(STANDINGS[standing]())
    text = markdown(own, plots(own))
    assert own.answer.title in text
    assert f"Ledger\n" in text  # noqa: F541 - the heading's line ends there


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_anywhere_is_no_html_and_no_link(confirmed_report: Report, text: str) -> None:
    own = rude(confirmed_report, text)
    written = markdown(own, plots(own))
    page = rendered(written)
    assert not re.search(r"<(script|img|svg|a|iframe|main)\b", page)
    assert "\x00" not in written
    assert "\x1b" not in written
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in written


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (Ruler(0.5, None), "·····○·····"),
        (Ruler(0.0, 1.0), "○·········●"),
        (Ruler(0.3, 0.31), "···●·······"),
        (Met(is_met=True), "yes"),
        (Met(is_met=False), "**no**"),
        ("a word", "a word"),
    ],
)
def test_a_cell_is_what_the_page_draws(cell: object, said: str) -> None:
    table = Table("It", ["what", ">how"], [["one", cell]])
    assert list(lines_of(table)) == [
        "It:", "", "| what | how |", "|---|--:|", f"| one | {said} |",
    ]  # fmt: skip


def test_no_line_of_a_log_ends_its_fence() -> None:
    lines = list(lines_of(Log("stderr.txt", ["```", "````", "after"])))
    assert lines[-1] == "`````"
    assert lines.count("`````") == 2
    assert list(lines_of(Commands(["ls"]))) == ["```", "ls", "```"]


def test_something_else_has_the_same_form() -> None:
    lead = Lead("two", "two runs", "Compared", "One is better.")
    text = of_sections(lead, [Section("a", "A", [Items(["x", "y"]), Text("z")])])
    assert text.splitlines()[:5] == ["# two: Compared", "", "two runs.", "", "**One is better.**"]
    assert "## A" in text
    assert "- x\n- y\n" in text
