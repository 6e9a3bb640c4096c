"""`export slurm FILE`: the runs of a file as jobs of a cluster."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from budgets.plain import printable
from objectives.api import Objective
from orchestrator.campaign.cells import campaign_name, cells_of
from orchestrator.campaign.conditions import factors_of
from orchestrator.cli.given import resolved_of
from orchestrator.cli.options import LAID_OVER, ConfigurationFile, Json, taking
from orchestrator.cli.program import examples, group
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import Config, resolve
from orchestrator.planning.configured import window_of
from orchestrator.slurm.asked import slurm_options
from orchestrator.slurm.job import Export
from orchestrator.slurm.jobs import Jobs
from orchestrator.slurm.page import as_dict, preview
from orchestrator.slurm.resources import resources
from orchestrator.slurm.tree import files_of
from orchestrator.slurm.write import write as put

exports = group("For other programs.", "export slurm search.toml")


@exports.callback()
def export() -> None:
    """For other programs."""


@exports.command(
    epilog=examples("export slurm search.toml", "export slurm campaign.toml --out jobs --write")
)
@taking(LAID_OVER)
def slurm(
    context: Context,
    file: ConfigurationFile,
    formerly: Annotated[Path | None, Argument(hidden=True)] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Where to; default: the campaign's name."),
    ] = None,
    write: Annotated[bool, Option("--write", help="Create it; without: only show it.")] = False,
    over: Annotated[
        bool, Option("--replace", help="Over an export of which nothing was submitted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """A file's runs as SLURM jobs, and one script that submits them.

    Writes nothing; with --write the directory.
    """
    resolved = resolved_of(context, file)
    export = export_of(resolved, out or formerly)
    files, notes = files_of(export), tuple(_notes(resolved, export))
    found = resources(export, _objectives(resolved))
    if write:
        is_new = put(export.directory, files, replace=over)
        said = "is written" if is_new else "is there already, and the same"
    else:
        said = "was not written: repeat the command with --write"
    if as_json:
        document = as_dict(export, found, [str(path) for path in files])
        print_json({**document, "said": said, "notes": notes})
        return
    if not write:
        print_markdown(preview(export, found, notes))
    print_line(printable(f"{export.directory} {said}."))
    if write:
        print_line(printable(f"Submit it with: {export.directory}/submit_all.sh"))


def export_of(resolved: Config, directory: Path | None) -> Export:
    """The jobs of a configuration. Raises ValueError, naming what cannot be."""
    options = slurm_options(resolved)
    name = _name(resolved)
    place = Path(os.path.abspath(name if directory is None else directory))  # no `..` in scripts
    python = sys.executable if options.python is None else options.python
    return Export(
        name=name,
        directory=place,
        work_directory=Path.cwd(),
        python=str(Path(python).expanduser().absolute()),
        jobs=Jobs(resolved, place, options).all(),
        options=options,
        factors=tuple(factor.name for factor in factors_of(resolved.factors)),
        objective=resolved.objective,
    )


def _name(resolved: Config) -> str:
    if resolved.campaign is not None:
        return campaign_name(resolved)
    assert resolved.file is not None, "the command has a file"
    name = resolved.search.run_id or resolved.file.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "search"


def _objectives(resolved: Config) -> tuple[Objective, ...]:
    """What is evaluated: of a campaign, in each of its cells."""
    if resolved.campaign is None:
        return (resolved.load_objective(),)
    return tuple(
        resolve(replace(resolved.layers, cell=(cell.name, dict(cell.settings)))).load_objective()
        for cell in cells_of(resolved)
    )


def _notes(resolved: Config, export: Export) -> Iterator[str]:
    if not export.options.gpus and resolved.backend.device == "auto":
        yield "backend.device is auto: the jobs run on CPUs. For one GPU each: slurm.gpus = 1"
    window = window_of(resolved.budget.window, resolved.budget.safety_margin)
    if window is not None and window.until is None:
        yield f"budget.window = {resolved.budget.window} counts from each run's own start"
    cut = {job.name: starts for job in export.jobs if (starts := export.starts(job) or 1) > 1}
    if cut:
        name, most = max(cut.items(), key=lambda pair: pair[1])
        yield f"{len(cut)} of {len(export.jobs)} runs need more than one start, {name} some {most}"
    for job in export.jobs:
        if cut.get(job.name, 1) > 1 + export.requeues(job):
            yield f"{job.name} is requeued {export.requeues(job)} times at most: raise slurm.time"
    if any(job.seconds is None for job in export.jobs):
        yield "no estimate: these runs are not calibrated; the time limits are slurm.time"
