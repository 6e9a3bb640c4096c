"""`program.json` in an evaluation's directory: what was started, fit to be read by others."""

import json
import os
from collections.abc import Mapping

from objectives.api import CommandLine, Context
from objectives.programs.environment import cleaned
from objectives.secrets import HIDDEN, is_secret_name, redacted

PROGRAM = "program.json"


def note(line: CommandLine | None, context: Context, facts: Mapping[str, str | int]) -> None:
    """Write it: the arguments, where, the environment, and what else is known of the program.

    Without a line it is what runs in this process, of whose environment as much is told.
    """
    if line is None:
        document: dict[str, object] = {"environment": shown(cleaned((), {}))}
    else:
        document = {
            "argv": [redacted(argument, os.environ) for argument in line.argv],
            "directory": str(line.directory),
            "environment": shown(line.environment),
        }
    document |= facts
    path = context.directory / PROGRAM
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what must not be written down."""
    return {
        name: HIDDEN if is_secret_name(name) else redacted(value, os.environ)
        for name, value in environment.items()
    }
