"""Text for people: numbers, names and commands, which steer nothing that shows them."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from budgets.formatting import (
    NAME,
    PROGRAM,
    _program,
    about,
    against,
    command,
    counted,
    duration,
    figure,
    first_few,
    in_bytes,
    listed,
    number,
    one_line,
    percent,
    plain,
    precise_duration,
    printable,
    quoted,
    rounded_up,
    sentence_case,
    shell_word,
    shortened,
    uncapitalized,
)


def test_what_steers_a_terminal_is_replaced_and_lines_stay() -> None:
    assert printable("\x1b[2Jred\u202e\nnext\t") == "\ufffd[2Jred\ufffd\nnext\ufffd"


def test_a_cause_is_one_line_of_words() -> None:
    assert one_line("  no\n\x1b[31m  memory\r\nleft ") == "no [31m memory left"


def test_bytes_that_are_no_text_are_shown_as_unknown() -> None:
    assert one_line("name \udcff") == "name ?"


@pytest.mark.parametrize(("length", "end"), [(300, "x"), (301, "...")])
def test_a_long_cause_is_cut_and_says_so(length: int, end: str) -> None:
    line = one_line("x" * length)
    assert len(line) == 300
    assert line.endswith(end)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a](b) *c* `d` <e> f|g ~h~ \\i", r"\[a\](b) \*c\* \`d\` \<e> f\|g \~h\~ \\i"),
        ("_a_ snake_case", r"\_a\_ snake_case"),
        ("two\n# lines", "two # lines"),
    ],
)
def test_text_means_nothing_to_markdown(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["plain", "two words", "it's $HOME", ""])
def test_a_printable_word_is_quoted_as_any_shell_has_it(text: str) -> None:
    assert shell_word(text) == shlex.quote(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a\n\r\t'\\b", r"$'a\n\r\t\'\\b'"),
        ("\x1b[0m", r"$'\x1b[0m'"),
        ("\udcff\n", r"$'\xff\n'"),
        ("\u202ex", r"$'\U0000202ex'"),
        ("\x9b\x7f", r"$'\U0000009b\x7f'"),
    ],
)
def test_any_other_word_is_one_line_that_bash_reads_back(text: str, word: str) -> None:
    assert shell_word(text) == word
    said = subprocess.run(
        ["/bin/bash", "-c", f"printf %s {word}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
        timeout=60,
    )
    assert said.stdout == text.encode("utf-8", "surrogateescape")


def test_a_command_quotes_the_words_that_a_shell_would_part() -> None:
    assert command("plan", "two words") == f"{PROGRAM} plan 'two words'"


def test_a_command_begins_as_the_program_was_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    installed = tmp_path / "orchestrator"
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(installed)])
    assert _program() == "orchestrator"
    monkeypatch.setenv("PATH", "/nowhere")
    assert _program() == str(installed)
    monkeypatch.setattr(sys, "argv", ["/somewhere/orchestrator/__main__.py"])
    assert _program() == f"{sys.executable} -m orchestrator"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert _program() == "python -m orchestrator"
    monkeypatch.setattr(sys, "argv", ["notebook"])
    assert _program() == "python -m orchestrator"
    monkeypatch.setenv(NAME, "scripts/run")
    assert _program() == "scripts/run"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (number(3.13849), "3.1385"),
        (number(0.031249, 3), "0.0312"),
        (number(None), "-"),
        (number(None, none="none"), "none"),
        (figure(12.345), "12.3"),
        (figure(1234.5), "1,234"),
    ],
)
def test_numbers_have_the_digits_that_say_something(said: str, text: str) -> None:
    assert said == text


@pytest.mark.parametrize(("share", "text"), [(0.99, "99%"), (0.995, "99.5%"), (0.01, "1%")])
def test_a_limit_keeps_its_digits(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (41.4, "41 s"),
        (59.6, "1 min 00 s"),
        (200.0, "3 min 20 s"),
        (3599.4, "59 min 59 s"),
        (7500.0, "2 h 05 min"),
        (360_000.0, "100 h 00 min"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_took_less_than_a_second_has_no_digits() -> None:
    assert about(0.0912) == "under a second"
    assert about(1.8) == "2 s"
    assert about(496) == "8 min 16 s"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023, "0.999 KiB"),
        (1024, "1 KiB"),
        (3.5 * 2**20, "3.5 MiB"),
        (1020 * 2**20, "0.996 GiB"),
        (2**42, "4 TiB"),
    ],
)
def test_bytes_are_said_in_the_unit_that_suits_them(count: float, said: str) -> None:
    assert in_bytes(count) == said


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.03125, "0.031 s"),
        (0.1, "0.1 s"),
        (6.44, "6.4 s"),
        (9.96, "10 s"),
        (200.0, "3 min 20 s"),
    ],
)
def test_short_durations_keep_a_tenth_or_two_digits(seconds: float, text: str) -> None:
    assert precise_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "what", "text"),
    [
        (0, "seed", "no seeds"),
        (1, "seed", "1 seed"),
        (2, "seed", "2 seeds"),
        (3, "boundary", "3 boundaries"),
    ],
)
def test_things_are_counted(count: int, what: str, text: str) -> None:
    assert counted(count, what) == text


@pytest.mark.parametrize(
    ("most", "text"),
    [(None, "1, 2, 3 and 4"), (4, "1, 2, 3 and 4"), (3, "1, 2 and 2 more"), (2, "1 and 3 more")],
)
def test_a_list_ends_with_how_many_more_there_are(most: int | None, text: str) -> None:
    assert listed([1, 2, 3, 4], most) == text
    assert listed([], most) == ""
    assert listed(["a"], most) == "a"


def test_of_many_clauses_the_first_few_are_said() -> None:
    assert first_few(["a", "b"], 2) == "a; b"
    assert first_few(["a", "b", "c", "d"], 2) == "a; b; and 2 more"


def test_what_is_needed_and_what_is_free_are_told_apart() -> None:
    assert against(0.04396, 0.004495, "hours") == ("2 min 38 s", "16 s")
    assert against(0.005, 0.001, "device-hours") == ("18 s of device time", "3.6 s")
    assert against(0.005, 0.00499, "hours") == ("18 s", "17.964 s")
    assert against(9.0, 5.0, "of money") == ("9 of money", "5 of money")


@pytest.mark.parametrize(
    ("value", "text"), [(0.048411, "0.0485"), (0.005, "0.005"), (12.34, "12.4"), (1234.0, "1240")]
)
def test_what_is_needed_at_least_is_never_rounded_down(value: float, text: str) -> None:
    assert rounded_up(value) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [("val_BPB", "Val_BPB"), ("nothing fits. Give", "Nothing fits. Give"), ("", "")],
)
def test_a_sentence_begins_with_a_capital_and_keeps_its_others(text: str, said: str) -> None:
    assert sentence_case(text) == said


def test_words_of_others_stand_behind_ours_in_quotation_marks() -> None:
    assert quoted(uncapitalized("It is so")) == "\u201cit is so\u201d"


def test_names_that_fit_stay_as_they_are() -> None:
    assert shortened(["abc", "abcd"], 4) == ["abc", "abcd"]


def test_a_name_that_is_too_long_keeps_its_beginning_and_more_of_its_end() -> None:
    assert shortened(["0123456789abcdef"], 10) == ["012…abcdef"]


def test_names_that_would_look_alike_begin_with_their_numbers() -> None:
    names = ["aaa-1-zzzzzzzzzz", "aaa-2-zzzzzzzzzz"]
    short = shortened(names, 10)
    assert short == ["1…zzzzzzzz", "2…zzzzzzzz"]
    assert all(len(name) == 10 for name in short)
