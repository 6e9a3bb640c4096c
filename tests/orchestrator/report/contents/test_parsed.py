"""Markdown of the budget package as blocks."""

from pathlib import Path

import pytest

from budgets.campaign.text import campaign_lines
from budgets.report.liveness_text import check_lines
from budgets.report.model import budget_report
from budgets.verdict.findings_text import condition_table, finalist_table
from orchestrator.records.recorded import load_state
from orchestrator.report.contents.blocks import Items, Met, Table, Text
from orchestrator.report.contents.parsed import blocks_of, why_none
from orchestrator.report.prose import unmarked

GOLDEN = Path(__file__).parents[3] / "golden"


def words(blocks: list[object]) -> str:
    """All that they say."""
    said: list[str] = []
    for block in blocks:
        match block:
            case Text(text):
                said.append(text)
            case Items(entries):
                said += entries
            case Table(_, columns, rows):
                said += [column.title for column in columns]
                said += [cell for row in rows for cell in row if isinstance(cell, str)]
    return " ".join(map(unmarked, said))


def test_paragraphs_lists_and_tables_are_told_apart() -> None:
    lines = [
        "## Title",
        "",
        "One",
        "line.",
        "",
        "- a",
        "- b",
        "",
        "| x | y |",
        "|---|--:|",
        "| 1 | 2 |",
    ]
    text, items, table = blocks_of(lines)
    assert text == Text("One line.")
    assert items == Items(["a", "b"])
    assert isinstance(table, Table)
    assert table.caption == "Title"
    assert [column.is_number for column in table.columns] == [False, True]
    assert list(map(list, table.rows)) == [["1", "2"]]


def test_captions_go_to_tables_in_turn() -> None:
    rows = ["| x |", "|---|", "| 1 |"]
    first, second = blocks_of([*rows, "", *rows], ("The first",))
    assert isinstance(first, Table)
    assert isinstance(second, Table)
    assert (first.caption, second.caption) == ("The first", "")


def test_a_bar_that_is_escaped_is_no_border() -> None:
    (table,) = blocks_of(["| x | y |", "|---|---|", r"| a \| b | c |"])
    assert isinstance(table, Table)
    assert list(table.rows[0]) == [r"a \| b", "c"]


@pytest.mark.parametrize(("row", "width"), [("| 1 |", 2), ("| 1 | 2 | 3 |", 2)])
def test_a_row_has_as_many_cells_as_there_are_columns(row: str, width: int) -> None:
    (table,) = blocks_of(["| x | y |", "|---|---|", row])
    assert isinstance(table, Table)
    assert len(table.rows[0]) == width


def test_a_campaigns_and_a_checks_words_are_all_there() -> None:
    for name in ("schema_5_campaign", "schema_1_check"):
        own = budget_report(load_state(GOLDEN / name))
        lines = check_lines(own.check) if own.campaign is None else campaign_lines(own.campaign)
        said = words(list(blocks_of(lines)))
        for line in lines:
            if line and not line.startswith(("#", "|")):
                assert unmarked(line.removeprefix("- ")) in said
        assert any(isinstance(block, Table) for block in blocks_of(lines))


def test_what_a_go_needs_is_met_or_not(confirmed_run: Path) -> None:
    found = budget_report(load_state(confirmed_run)).findings
    assert found is not None
    (table,) = blocks_of(condition_table(found))
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == [Met(is_met=c.met) for c in found.conditions]
    (table,) = blocks_of(finalist_table(found))
    assert isinstance(table, Table)
    assert len(table.rows) == len(found.finalists)


def test_a_reason_is_a_sentence() -> None:
    assert why_none("no file was [left]") == r"No file was \[left\]."
    assert why_none("It is so.") == "It is so."
