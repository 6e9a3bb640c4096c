"""A program of commands, as all of them here are made: what `--help` shows of each."""

from collections.abc import Callable
from copy import copy
from typing import Any

import typer
from typer.core import TyperCommand

from budgets.plain import PROGRAM


class _Command(TyperCommand):
    """Shows what is not hidden, each by its first spelling: the others are of before."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown = copy(self)
        shown.params = [
            copy(option) for option in self.params if not getattr(option, "hidden", False)
        ]
        for option in shown.params:
            option.opts = option.opts[:1]
        super(_Command, shown).format_help(ctx, formatter)


class Program(typer.Typer):
    """Commands, or a group of them."""

    def command(self, name: str | None = None, **given: Any) -> Callable[..., Any]:
        return super().command(name, **{"cls": _Command, **given})


def group(about: str, *lines: str, **given: Any) -> Program:
    """Commands under one name, with examples of them."""
    return Program(help=about, no_args_is_help=True, epilog=examples(*lines), **given)


def examples(*lines: str) -> str:
    """What `--help` ends with: each is a command line, to be pasted."""
    return "\n\n".join(("Examples:", *(f"{PROGRAM} {line}" for line in lines)))
