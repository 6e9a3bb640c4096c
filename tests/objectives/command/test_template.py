"""Placeholders, and what is none."""

import pytest

from objectives.command.template import check_braces, check_known, filled, placeholders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{lr}", "0.1"),
        ("--lr={lr}", "--lr=0.1"),
        ("{lr}{lr} {a.b-c}", "0.10.1 x"),
        ("plain", "plain"),
        ("", ""),
        ("{{lr}}", "{lr}"),
        ("{{{lr}}}", "{0.1}"),
        ("{other}", "{other}"),
    ],
)
def test_each_placeholder_is_filled(text: str, expected: str) -> None:
    assert filled(text, {"lr": "0.1", "a.b-c": "x"}) == expected


def test_a_value_is_never_looked_at_again() -> None:
    assert filled("{a}{b}", {"a": "{b}", "b": "{{a}}"}) == "{b}{{a}}"


def test_names_are_those_in_braces() -> None:
    assert placeholders("{a} {{b}} {c}={a}") == ("a", "c", "a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{rl}", r"argv, entry 2: unknown placeholder \{rl\} in '\{rl\}'. Known are \{lr\}, \{x\}"),
        ("{}", r"unknown placeholder \{\}"),
        ("{lr:.3f}", r"unknown placeholder \{lr:.3f\}"),
        ("{lr.real}", r"unknown placeholder \{lr.real\}"),
        ("{lr!r}", r"unknown placeholder"),
        ("{ lr }", r"unknown placeholder"),
    ],
)
def test_what_is_no_placeholder_is_refused_with_all_that_are(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        check_known("argv, entry 2", text, ("lr", "x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{0", r"argv, entry 2: '\{0' has a \{ by itself: write \{\{ for one"),
        ("a}", r"argv, entry 2: 'a\}' has a \} by itself: write \}\} for one"),
        ("{a{b}", r"has a \{ by itself"),
    ],
)
def test_a_brace_by_itself_is_refused_with_the_way_to_write_one(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        check_braces("argv, entry 2", text)
