"""`amend`, `verify` and `export`: commands on a run's ledger, and jobs for SLURM."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Context, Option

from budgets.formatting import counted, move_command, printable, shell_word
from budgets.ledger import damaged
from budgets.storage import write_aside
from orchestrator.cli.errors import EXIT_CORRUPT
from orchestrator.cli.options import (
    ROOT,
    Json,
    Reason,
    Root,
    RunName,
    for_record,
    named_file,
    resolved,
)
from orchestrator.cli.terminal import print_json, print_line, print_markdown, write_bytes
from orchestrator.look.answer import in_short
from orchestrator.look.run import Run
from orchestrator.records.runs import find_run, load_state
from orchestrator.records.tables import table_of


def verify(
    run: RunName = None,
    root: Root = ROOT,
    salvage: Annotated[
        Path | None,
        Option("--salvage", metavar="DIR", help="Copy what is whole of a damaged ledger to DIR."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Replay a run from its ledger and name the first divergence.

    Writes nothing; with --salvage the new directory DIR.
    """
    directory = find_run(run, root)
    if salvage is not None:
        if run is None:
            raise ValueError("--salvage: say which run, by its id or its directory")
        _salvage(directory, salvage, as_json=as_json)
        return
    from orchestrator.verify import verify as replay  # imports cma

    found = replay(directory)
    if as_json:
        print_json(asdict(found))
    else:
        for line in found.held:
            print_line(f"ok    {line}")
        failure = f"FAIL  {found.divergence}"
        print_line(printable(failure) if found.divergence else f"head  {found.head}")
    if found.divergence:
        raise typer.Exit(EXIT_CORRUPT)


def _salvage(source: Path, out: Path, *, as_json: bool) -> None:
    """Copy the whole records of a damaged or rolled back ledger to a new directory."""
    from orchestrator.look.reports import rebuild
    from orchestrator.run.salvage import salvage

    saved = salvage(source, out)
    rebuild(out, datetime.now(UTC))
    if as_json:
        print_json({**asdict(saved), "out": str(out)})
        return
    print_line(
        f"Kept {saved.records} records in {saved.out}.\n"
        f"Lost: {saved.lost_bytes} bytes. Why: {saved.why}.\n"
        "Its next session settles what is open, from the results in eval/ where they are.\n"
        "To go on, put it in the old one's place and repeat the run's command:\n"
        f"  {move_command(source, damaged(source))} && {move_command(saved.out, source)}"
    )


def amend(
    context: Context,
    run: Annotated[str, Argument(metavar="RUN", help="Run id or directory.")],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Change a run's caps, for the record; its next session keeps them. It must not be running.

    Writes one record to the run's ledger.
    """
    from orchestrator.look import text
    from orchestrator.look.document import document
    from orchestrator.plan.resolve import window_of
    from orchestrator.run.amend import Amendment
    from orchestrator.run.amend import amend as amend_run
    from orchestrator.run.session import system_clock

    config = resolved(context)
    directory, caps = find_run(run, Path(config.runs_dir)), config.budget
    amendment = Amendment(
        reason=for_record(reason),
        evaluations=caps.max_evals,
        device_hours=caps.max_device_hours,
        hours=caps.max_hours,
        cost=caps.max_cost,
        window=window_of(caps),
    )
    state = amend_run(directory, amendment, system_clock())
    view = Run(state, datetime.now(UTC), directory)
    if as_json:
        print_json(document(view))
        return
    print_line(f"{directory}: amended. Planned: {text.amended(state.amended[-1])}")
    print_line(in_short(view))
    print_line("Repeat the command that began it to go on.")


def table(
    run: RunName = None,
    root: Root = ROOT,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Ends with .csv or .json; default: print it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Every evaluation as a row: place, status, score, cost, knobs, metrics.

    Writes nothing but the file --out.
    """
    if out is not None:
        as_json = named_file(out, ".csv", ".json").suffix == ".json"
    data = table_of(load_state(find_run(run, root)), "json" if as_json else "csv")
    if out is None:
        write_bytes(data)
    else:
        write_aside(out, data)
        print_line(printable(f"{out}: {len(data)} bytes"))


def optuna(
    out: Annotated[
        Path, Option("--out", metavar="FILE", help="Where to; it must not be there yet.")
    ],
    run: RunName = None,
    root: Root = ROOT,
) -> None:
    """A search as an Optuna study: a trial per candidate, for optuna-dashboard.

    Writes the file --out. Its best trial is the best score, not what is recommended.
    """
    from orchestrator.look.document import BEST_TRIAL, as_study

    directory = find_run(run, root)
    trials = as_study(Run(load_state(directory), datetime.now(UTC), directory), out)
    look = f"optuna-dashboard sqlite:///{shell_word(str(out.absolute()))}"
    print_line(printable(f"{counted(trials, 'trial')} written to {out}. Look: {look}"))
    print_line(BEST_TRIAL)


def slurm(
    context: Context,
    file: Annotated[Path, Argument(metavar="FILE", help="A configuration in TOML.")],
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Where to; default: the campaign's name."),
    ] = None,
    write: Annotated[bool, Option("--write", help="Create it; without: only show it.")] = False,
) -> None:
    """The runs of FILE as SLURM jobs, and one script that submits them.

    Writes nothing; with --write the directory, which must not be there yet.
    """
    from orchestrator import slurm as jobs  # imports numpy

    export = jobs.export_of(resolved(context), out)
    if write:
        jobs.write(export.directory, jobs.files_of(export))
        print_line(printable(f"{export.directory} is written."))
        print_line(printable(f"Submit it with: {export.directory}/{jobs.SUBMIT}"))
    else:
        print_markdown(jobs.preview(export))
        print_line(printable(f"{export.directory} was not written: repeat it with --write."))
