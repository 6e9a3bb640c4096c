"""Text for people: numbers, names and commands, which steer nothing that shows them."""

import pytest

from budgets.formatting import (
    PROGRAM,
    command,
    counted,
    duration,
    listed,
    one_line,
    percent,
    plain,
    printable,
    shortened,
)


def test_a_command_quotes_the_words_that_a_shell_would_part() -> None:
    assert command("plan", "two words", "a\n") == rf"{PROGRAM} plan 'two words' $'\x61\x0a'"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (percent(0.995), "99.5%"),
        (percent(12.345, 3), "1234%"),
        (duration(7500.0), "2 h 05 min"),
        (duration(0.03125), "0.031 s"),
        (duration(6.44), "6.4 s"),
        (counted(0, "seed"), "no seeds"),
        (listed([1, 2, 3, 4], 3), "1, 2 and 2 more"),
        # a terminal is not steered, and lines stay
        (printable("\x1b[2Jred\u202e\nnext\t"), "\ufffd[2Jred\ufffd\nnext\ufffd"),
        (one_line("  no\n\x1b[31m  memory\r\nleft "), "no [31m memory left"),
        (one_line("name \udcff"), "name ?"),
        (one_line(301 * "x"), f"{297 * 'x'}..."),
        # text means nothing to Markdown
        (
            plain("[a](b) *c* `d` <e> f|g ~h~ \\i"),
            r"\[a\](b) \*c\* \`d\` \<e> f\|g \~h\~ \\i",
        ),
        (plain("_a_ snake_case"), r"\_a\_ snake_case"),
        (plain("two\n\x1b[m lines"), "two \ufffd\\[m lines"),
        (shortened(["0123456789abcdef"], 10), ["012\u2026abcdef"]),
        (shortened(["aaa-1-zzzzzzz", "aaa-2-zzzzzzz"], 9), ["1\u2026zzzzzzz", "2\u2026zzzzzzz"]),
        (max(map(len, shortened(["a" * 30] * 12, 9))), 9),
    ],
)
def test_what_people_read(said: str | list[str], text: str | list[str]) -> None:
    assert said == text
