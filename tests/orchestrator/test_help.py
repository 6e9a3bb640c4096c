"""Every `--help`: examples that are command lines, and words as they are written."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from rich.text import Text

from orchestrator.cli.app import program

PROGRAM = "python -m orchestrator"

COLUMNS = 78
"""Of an example: a narrow terminal's, less what stands beside it. A broken line pastes as two."""


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, group
    for name, inner in getattr(group, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


WHOLE = program(is_whole=True)
EVERY = dict(commands(WHOLE, PROGRAM))


def parsed(words: list[str]) -> None:
    """As the command line parses them; raises what it would say."""
    command, context = WHOLE, WHOLE.make_context("program", words)
    while hasattr(command, "commands"):
        words = [*context._protected_args, *context.args]
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, words, parent=context)


@pytest.mark.parametrize("path", EVERY)
def test_every_command_ends_its_help_with_examples_of_itself_that_parse(path: str) -> None:
    title, *lines = EVERY[path].epilog.split("\n")
    assert (title, bool(lines)) == ("Examples:", True)
    for line in lines:
        assert f"{line} ".startswith(f"{path} ")
        assert len(line) <= COLUMNS
        parsed(shlex.split(line.removeprefix(PROGRAM)))


@pytest.mark.parametrize("path", EVERY)
def test_help_shows_its_words_as_they_are_written(path: str) -> None:
    command = EVERY[path]
    for text in (str(command.help), *(own.help or "" for own in command.params)):
        assert Text.from_markup(text).plain == text  # no [word] is taken for a style
        assert "\n" not in text.replace("\n\n", "")  # broken by the terminal alone
