"""`doctor`: everything that a run needs, looked at, with the command that fixes it."""

from typing import Annotated

import typer
from typer import Context, Option

from orchestrator.cli.given import resolved_of
from orchestrator.cli.options import FILE, MACHINE, PLACE, TUNED, Json, keys, taking
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.doctor import as_dict, examine, nothing_is_missing, to_markdown

EXIT_MISSING = 2


@taking(FILE, keys("search.tier"), PLACE, TUNED, MACHINE)
def doctor(
    context: Context,
    quick: Annotated[
        bool, Option("--quick", help="Leave out what takes seconds, such as importing torch.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Whether all that a run needs is here, and the command that fixes what is not. Writes nothing.

    Exit code 2 when something needed is missing.
    """
    sections = examine(resolved_of(context), quick=quick)
    if as_json:
        print_json(as_dict(sections))
    else:
        print_markdown(to_markdown(sections))
    if not nothing_is_missing(sections):
        raise typer.Exit(EXIT_MISSING)
