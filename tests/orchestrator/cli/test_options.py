"""What every command takes: each option once, and what it was called before."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from orchestrator.cli.entry import app

FORMERLY = [
    ("plan phase1 --gpus 1,4", {"counts": "1,4"}),
    ("dry-run --seed 3", {"seed": 3}),
    ("calibrate --repeats 5", {"seeds": 5}),
    ("proxy check --run first", {"formerly": "first"}),
    ("ledger verify first", {"run": "first"}),
]


def parsed(words: list[str]) -> tuple[Any, dict[str, Any]]:
    command: Any = typer.main.get_command(app)
    context = command.make_context("orchestrator", words)
    while hasattr(command, "commands"):
        words = [*context._protected_args, *context.args]
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, words, parent=context)
    return command, context.params


@pytest.mark.parametrize(("line", "said"), FORMERLY)
def test_what_an_option_was_called_before_is_still_read(line: str, said: dict[str, Any]) -> None:
    _, params = parsed(line.split())

    assert params.items() >= said.items()


@pytest.mark.parametrize("line", ["init --template smoke --write f", "plan phase1 --fit --apply f"])
def test_a_path_is_read_by_its_former_option_too(line: str) -> None:
    _, params = parsed(line.split())

    assert "f" in map(str, params.values())


def every(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from every(inner)


def test_no_command_takes_an_option_twice() -> None:
    for command in every(typer.main.get_command(app)):
        names = [
            name for option in command.params for name in (*option.opts, *option.secondary_opts)
        ]
        assert len(names) == len(set(names)), command.name


def test_the_help_of_max_evals_says_what_comes_on_top() -> None:
    command, _ = parsed(["phase1", "--tier", "min"])
    (option,) = (one for one in command.params if "--max-evals" in one.opts)

    assert option.help == (
        "Evaluations at most; a search's comparison on fresh seeds comes on top."
    )
