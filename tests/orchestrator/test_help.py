"""Every `--help`: what a command does, what it writes, and examples that work when pasted."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from rich.text import Text

from orchestrator.cli.entry import program
from tests.orchestrator.test_nothing_is_written import CAMPAIGN, RUNS_OR_WRITES, SEARCH, STAYS

Command = Callable[..., Any]

PROGRAMS = {"python -m orchestrator": program(is_whole=True)}

COLUMNS = 78
"""Of an example: a narrow terminal's, less what stands beside it. A broken line pastes as two."""

ACTS = {"--out", "--salvage", "--train", "--write"}

NOT_RUN = {*RUNS_OR_WRITES, *STAYS, "doctor", "plan"}
"""`doctor` looks at this very machine, a phase 2 wants nanochat's Go: elsewhere tested."""


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, group
    for name, inner in getattr(group, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


EVERY = dict(pair for name, program in PROGRAMS.items() for pair in commands(program, name))


def examples_of(command: Any) -> list[str]:
    title, *lines = (command.epilog or "").split("\n")
    assert title == "Examples:"
    return lines


EXAMPLES = list(dict.fromkeys(line for command in EVERY.values() for line in examples_of(command)))


@pytest.mark.parametrize("path", EVERY)
def test_every_command_ends_its_help_with_examples_of_itself(path: str) -> None:
    lines = examples_of(EVERY[path])

    assert 1 <= len(lines) <= 3
    assert all(f"{line} ".startswith(f"{path} ") for line in lines)
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("path", EVERY)
def test_help_shows_its_words_as_they_are_written(path: str) -> None:
    command = EVERY[path]
    paragraphs = [str(command.help), *(p.help or "" for p in command.params)]
    for text in paragraphs:
        assert Text.from_markup(text).plain == text  # no [word] is taken for a style
        assert "\n" not in text.replace("\n\n", "")  # broken by the terminal alone


@pytest.fixture
def shown(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """A command's help on a narrow terminal."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", COLUMNS + 2)
    program = next(name for name in PROGRAMS if path.startswith(name))
    words = [*path.removeprefix(program).split(), "--help"]

    command: Any = PROGRAMS[program]
    command.main(words, standalone_mode=False)
    return capsys.readouterr().out


@pytest.mark.parametrize("path", EVERY)
def test_a_narrow_terminal_shows_every_option_and_example_whole(path: str, shown: str) -> None:
    lines = [line.strip() for line in shown.rstrip().splitlines()]
    examples = examples_of(EVERY[path])
    assert lines[-len(examples) - 1 :] == ["Examples:", *examples]
    options = [p for p in EVERY[path].params if p.param_type_name == "option"]
    names = [option.opts[0] for option in options if not option.hidden]
    assert [name for name in names if name not in shown] == []


@pytest.mark.parametrize("path", EVERY)
def test_an_option_shows_what_it_takes_in_words_of_ours_or_its_choices(shown: str) -> None:
    types = re.findall(r"<([^>]*)>", shown)
    assert [one for one in types if "|" not in one] == []


def parsed(program: typer.Typer, words: list[str]) -> None:
    """As the command line parses them; raises what it would say."""
    command: Any = program
    context = command.make_context("program", words)
    while hasattr(command, "commands"):
        words = [*context._protected_args, *context.args]
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, words, parent=context)


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_a_command_line_that_parses(line: str) -> None:
    program = next(name for name in PROGRAMS if line.startswith(name))

    parsed(PROGRAMS[program], shlex.split(line.removeprefix(program)))


def looks(line: str) -> bool:
    """Whether it writes nothing but files in its working directory, and comes to an end."""
    words = f"{line.removeprefix('python -m orchestrator ')} "
    return not (ACTS & set(words.split()) or any(words.startswith(f"{n} ") for n in NOT_RUN))


LOOKS = [line for line in EXAMPLES if line.startswith("python -m orchestrator ") and looks(line)]


@pytest.fixture(scope="module")
def specimen(tmp_path_factory: pytest.TempPathFactory, confirmed_run: Path) -> Path:
    """A working directory with the runs and files that the examples name."""
    place = tmp_path_factory.mktemp("specimen")
    for name in ("first", "min-nanochat-s1", "min-nanochat-s2"):
        shutil.copytree(confirmed_run, place / "artifacts/cmaes/phase1" / name)
    (place / "search.toml").write_text(SEARCH)
    (place / "campaign.toml").write_text(CAMPAIGN)
    return place


@pytest.mark.parametrize("line", LOOKS)
def test_an_example_that_only_looks_works_as_it_stands(
    line: str, specimen: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(specimen)
    if "--png" in line:
        pytest.importorskip("matplotlib")

    answer = command(*shlex.split(line)[3:])

    assert answer.code == 0, answer.err
