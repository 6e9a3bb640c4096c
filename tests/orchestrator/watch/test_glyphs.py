"""Shapes that any terminal can show, in lines that fit."""

import pytest
from rich.cells import cell_len

from orchestrator.watch.glyphs import (
    ASCII,
    UNICODE,
    bar,
    fitted,
    glyphs_for,
    padded,
    shown,
    sparkline,
)


@pytest.mark.parametrize(
    ("encoding", "glyphs"),
    [
        ("utf-8", UNICODE),
        ("ascii", ASCII),
        ("ansi_x3.4-1968", ASCII),
        ("latin-1", ASCII),
        ("no such encoding", ASCII),
    ],
)
def test_what_an_encoding_cannot_say_is_said_in_ascii(encoding: str, glyphs: object) -> None:
    assert glyphs_for(encoding) is glyphs


def test_ascii_glyphs_are_ascii() -> None:
    assert "".join(ASCII).isascii()


@pytest.mark.parametrize(
    ("spent", "reserved", "expected"),
    [
        (0.0, 0.0, "----------"),
        (0.5, 0.2, "#####==---"),
        (1.0, 0.0, "##########"),
        (0.9, 0.5, "#########="),
        (3.0, 1.0, "##########"),
        (-1.0, 0.0, "----------"),
    ],
)
def test_a_bar_is_as_long_as_its_shares(spent: float, reserved: float, expected: str) -> None:
    assert bar(10, spent, reserved, ASCII) == expected


def test_a_sparkline_is_the_higher_the_larger_the_value() -> None:
    assert sparkline([0.0, 0.5, 1.0], (), UNICODE) == "▁▅█"


def test_a_sparkline_has_the_band_in_its_scale() -> None:
    assert sparkline([1.0, 2.0], (0.0, 3.0), UNICODE) == "▃▆"


def test_what_does_not_compare_has_no_height() -> None:
    assert sparkline([0.0, None, 1.0], (), UNICODE) == "▁·█"


@pytest.mark.parametrize("values", [[], [None], [3.0], [3.0, 3.0]])
def test_a_sparkline_of_nothing_or_of_one_value_is_as_long_as_that(
    values: list[float | None],
) -> None:
    assert len(sparkline(values, (), UNICODE)) == len(values)


def test_a_line_that_fits_stays_as_it_is() -> None:
    line = (("one ", None), ("two", None))
    assert fitted(line, 7, "…") is line


@pytest.mark.parametrize("width", range(12))
def test_a_line_that_is_too_long_ends_in_a_cut_and_fits(width: int) -> None:
    line = (("one ", None), ("two 日本 ", None), ("three", None))
    text = "".join(text for text, _ in fitted(line, width, "…"))
    assert cell_len(text) <= width
    assert text.endswith("…") or width == 0


def test_wide_characters_count_as_the_columns_that_they_take() -> None:
    assert padded("日本語", 5, "…") == "日本…"
    assert padded("ab", 5, "…") == "ab   "


def test_text_from_anywhere_steers_no_terminal() -> None:
    assert shown("a\x1b[2Jb\x07\u202ec", "utf-8") == "a�[2Jb��c"
    assert shown("é日", "ascii") == "??"
    assert shown("\ud800", "utf-8") == "�"
