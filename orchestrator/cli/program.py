"""The command line's groups and commands, and what `--help` shows of each."""

from collections.abc import Callable
from copy import copy
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from budgets.formatting import PROGRAM


def _as_shown(command: Any, context: Any) -> Any:
    """What is not hidden, each by its first spelling (the others are of before).

    Beside a switch or an argument stands no type.
    """
    shown = copy(command)
    shown.params = [
        copy(own) for own in command.get_params(context) if not getattr(own, "hidden", False)
    ]
    shown.add_help_option = False  # it is among them
    for own in shown.params:
        own.opts = own.opts[:1]
        if own.param_type_name == "argument" or own.is_flag:
            own.display_type_rich = lambda **_: None
    return shown


class _Command(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        super(_Command, _as_shown(self, ctx)).format_help(ctx, formatter)


class Group(TyperGroup):
    """Commands under a name."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super(Group, _as_shown(self, ctx)).format_help(ctx, formatter)


class Program(typer.Typer):
    """Commands, or a group of them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"cls": Group, **given})

    def command(self, name: str | None = None, **given: Any) -> Callable[..., Any]:
        return super().command(name, **{"cls": _Command, **given})


def examples(*lines: str) -> str:
    """What `--help` ends with: each is a command line, to be pasted."""
    return "\n".join(("Examples:", *(f"{PROGRAM} {line}" for line in lines)))


def group(about: str, *lines: str, **given: Any) -> Program:
    """Commands under one name, with examples of them."""
    return Program(
        help=about, no_args_is_help=True, epilog=examples(*lines), add_completion=False, **given
    )
