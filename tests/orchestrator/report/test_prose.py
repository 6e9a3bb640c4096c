"""The little Markdown of reports, taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.plain import plain
from orchestrator.report.prose import Span, spans, unmarked


def test_code_and_bold_are_spans_of_their_own() -> None:
    assert spans("see `report RUN` and **this** now") == [
        Span("see "),
        Span("report RUN", "code"),
        Span(" and "),
        Span("this", "strong"),
        Span(" now"),
    ]


@given(st.text(max_size=60))
def test_plain_text_comes_back_as_it_was_made_fit(text: str) -> None:
    one_line = " ".join("".join(c if c.isprintable() or c == "\n" else "�" for c in text).split())
    assert unmarked(plain(text)) == one_line
    assert all(span.style == "" for span in spans(plain(text)))


@pytest.mark.parametrize("text", ["a ` b", "2 ** 3", "a*b", "**", "``", "tail\\"])
def test_marks_that_mark_nothing_stay(text: str) -> None:
    assert unmarked(text) == text
