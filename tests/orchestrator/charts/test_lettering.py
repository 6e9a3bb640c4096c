"""Room that text takes, and text cut to room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.charts.lettering import cut, shown, widest, width_of


def test_wide_letters_take_more_room_than_narrow_ones() -> None:
    assert width_of("mmmm") > width_of("aaaa") > width_of("iiii")
    assert width_of("日本") > width_of("ab")
    assert width_of("e\u0301") == width_of("e")


def test_text_that_fits_is_left_as_it_is() -> None:
    assert cut("weight_decay", width_of("weight_decay")) == "weight_decay"


def test_text_that_does_not_fit_says_that_it_goes_on() -> None:
    found = cut("learning_rate_of_the_embedding", 100)
    assert found.startswith("learning")
    assert found.endswith("…")


@given(st.text(), st.floats(12, 400))
def test_cut_text_is_one_printable_line_that_fits(text: str, room: float) -> None:
    found = cut(text, room)
    assert width_of(found) <= room + 1e-6
    assert found.isprintable()


def test_what_steers_or_turns_text_around_is_replaced() -> None:
    assert shown("a\u202eb\x1b[2J\nc  d") == "a�b�[2J c d"


@pytest.mark.parametrize(("texts", "expected"), [([], 0.0), (["i", "m"], width_of("m"))])
def test_the_widest(texts: list[str], expected: float) -> None:
    assert widest(texts) == expected
