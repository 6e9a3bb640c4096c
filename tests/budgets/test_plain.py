"""Text from anywhere cannot steer what it is shown in."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from budgets.plain import NAME, PROGRAM, _program, command, one_line, plain, printable, shell_word


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
