"""Blocks as Markdown."""

from budgets.blocks import Heading, Items, Met, Table, Text, markdown


def test_a_blank_line_is_between_any_two_blocks_and_nowhere_else() -> None:
    assert markdown([Heading("A part"), Text("One\nand two."), Items(["a", "b"])]) == [
        "### A part",
        "",
        "One\nand two.",
        "",
        "- a",
        "- b",
    ]
    assert markdown([]) == []


def test_a_table_has_numbers_at_the_right_and_bars_at_the_left() -> None:
    own = Table("a caption", ["who", ">score", "<as a bar"], [["a", 3, "██"]])
    assert markdown([own]) == [
        "a caption:",
        "",
        "| who | score | as a bar |",
        "|---|--:|:--|",
        "| a | 3 | ██ |",
    ]


def test_what_is_not_met_is_in_bold() -> None:
    rows = [[Met(is_met=True)], [Met(is_met=False)]]
    assert markdown([Table("", ["met"], rows)])[2:] == ["| yes |", "| **no** |"]
