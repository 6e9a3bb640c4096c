"""`export slurm FILE`: the runs of a file as jobs of a cluster."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from budgets.formatting import printable
from orchestrator.cli.options import LAID_OVER, Json, resolved_of, taking
from orchestrator.cli.terminal import print_json, print_line, print_markdown


@taking(LAID_OVER)
def slurm(
    context: Context,
    file: Annotated[Path, Argument(metavar="FILE", help="A configuration in TOML.")],
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Where to; default: the campaign's name."),
    ] = None,
    write: Annotated[bool, Option("--write", help="Create it; without: only show it.")] = False,
    as_json: Json = False,
) -> None:
    """A file's runs as SLURM jobs, and one script that submits them.

    Writes nothing; with --write the directory, which must not be there yet.
    """
    from orchestrator import slurm as jobs  # imports numpy

    export = jobs.export_of(resolved_of(context, file), out)
    if write:
        jobs.write(export.directory, jobs.files_of(export))
    if as_json:
        print_json(jobs.as_dict(export) | {"written": write})
        return
    if not write:
        print_markdown(jobs.preview(export))
        print_line(printable(f"{export.directory} was not written: repeat it with --write."))
        return
    print_line(printable(f"{export.directory} is written."))
    print_line(printable(f"Submit it with: {export.directory}/{jobs.SUBMIT}"))
