"""What every command takes."""

from collections.abc import Iterator
from typing import Any

from orchestrator.cli.entry import program


def parsed(words: list[str]) -> tuple[Any, dict[str, Any]]:
    command: Any = program(is_whole=True)
    context = command.make_context("orchestrator", words)
    while hasattr(command, "commands"):
        words = [*context._protected_args, *context.args]
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, words, parent=context)
    return command, context.params


def every(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from every(inner)


def test_no_command_takes_an_option_twice() -> None:
    for command in every(program(is_whole=True)):
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
