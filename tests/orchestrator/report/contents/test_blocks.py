"""Blocks that a report has beside those of a budget report."""

from budgets.blocks import Heading, Text
from orchestrator.report.contents.blocks import why_none, without_headings


def test_a_section_has_no_heading_of_a_budget_report() -> None:
    assert list(without_headings([Heading("Proxy"), Text("One.")])) == [Text("One.")]


def test_a_reason_is_a_sentence() -> None:
    assert why_none("no file was [left]") == Text(r"No file was \[left\].")
    assert why_none("It is so.") == Text("It is so.")
