"""`dry-run`: what one evaluation would start. It starts, writes and spends nothing."""

from pathlib import Path
from typing import Annotated

from typer import Context, Exit, Option

from budgets.plain import printable
from orchestrator.cli.errors import EXIT_BAD_INPUT
from orchestrator.cli.given import resolved_of
from orchestrator.cli.options import FILE, PLACE, TUNED, Json, keys, taking
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.dry_run import dry_run, imagined, knobs_given, to_lines


@taking(FILE, PLACE, TUNED, keys("backend.device", panel="Machine"))
def show_dry_run(
    context: Context,
    knobs: Annotated[
        str | None,
        Option("--knobs", metavar="A=1,B=2", help="In their own units; default: the baseline."),
    ] = None,
    seed: Annotated[
        int,
        Option("--evaluation-seed", metavar="SEED", min=0, help="Seed of this evaluation."),
    ] = 1,
    as_json: Json = False,
) -> None:
    """What one evaluation would start: arguments, directory, environment. Writes nothing."""
    resolved = resolved_of(context)
    chosen = resolved.tuned
    place = imagined(Path(resolved.runs_dir), resolved.backend.device, resolved.backend.threads)
    found = dry_run(chosen, knobs_given(knobs, chosen.space), seed, place)
    if as_json:
        print_json(found)
    else:
        for line in to_lines(found):
            print_line(printable(line))
    if found["missing"]:
        raise Exit(EXIT_BAD_INPUT)
