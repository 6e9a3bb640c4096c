"""Commands of the orchestrator's program, and examples of them."""

from functools import partial
from typing import Any

from budgets.formatting import PROGRAM
from objectives import commands

examples = partial(commands.examples, PROGRAM)
"""What `--help` ends with: each is a command line, to be pasted."""


def group(about: str, *lines: str, **given: Any) -> commands.Program:
    """Commands under one name, with examples of them."""
    return commands.Program(
        help=about, no_args_is_help=True, epilog=examples(*lines), add_completion=False, **given
    )
