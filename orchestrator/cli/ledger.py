"""`verify`, `amend` and `export`: a run's ledger replayed, salvaged, amended, as a table."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from typer import Context, Option

from budgets.formatting import counted, move_command, printable
from budgets.ledger import damaged
from objectives.nanochat.config import NanochatConfig
from orchestrator.cli.errors import EXIT_CORRUPT
from orchestrator.cli.options import (
    BUDGET,
    DEFAULT_ROOT,
    SETTINGS,
    GivenRun,
    Json,
    Root,
    RunName,
    for_record,
    only_of,
    resolved_of,
    taking,
)
from orchestrator.cli.optuna import as_study
from orchestrator.cli.program import examples, group
from orchestrator.cli.slurm import slurm
from orchestrator.cli.terminal import print_json, print_line, write_bytes
from orchestrator.look import text
from orchestrator.look.document import document
from orchestrator.look.page import named_file
from orchestrator.look.run import Run
from orchestrator.plan.resolve import window_of
from orchestrator.records.export import Format, export
from orchestrator.records.recorded import find_run, load_state


def verify(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
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
    from orchestrator.run.session import system_clock

    saved = salvage(source, out)
    rebuild(out, system_clock().now())
    if as_json:
        print_json({**asdict(saved), "out": str(out)})
        return
    print_line(
        f"Kept {saved.records} records in {saved.out}.\n"
        f"Lost: {saved.lost_records} known records, {saved.lost_bytes} bytes. Why: {saved.why}.\n"
        "Its next session settles what is open, from the results in eval/ where they are.\n"
        "To go on, put it in the old one's place and repeat the run's command:\n"
        f"  {move_command(source, damaged(source))} && {move_command(saved.out, source)}"
    )


@taking(BUDGET, SETTINGS)
def amend(
    context: Context,
    run: GivenRun,
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why; goes on record.")] = "",
    root: Root = DEFAULT_ROOT,
    as_json: Json = False,
) -> None:
    """Change a run's caps, for the record; its next session keeps them. It must not be running.

    Writes one record to the run's ledger.
    """
    from orchestrator.run.amend import Amendment
    from orchestrator.run.amend import amend as amend_run
    from orchestrator.run.session import system_clock

    only_of({"budget"}, context)
    directory, caps = find_run(run, root), resolved_of(context).budget
    amendment = Amendment(
        reason=for_record(reason),
        evaluations=caps.max_evals,
        device_hours=caps.max_device_hours,
        hours=caps.max_hours,
        cost=caps.max_cost,
        window=window_of(caps),
    )
    state = amend_run(directory, amendment, system_clock())
    found = Run(state, datetime.now(UTC), directory)
    if as_json:
        print_json(document(found))
        return
    earlier = state.amended[-2] if len(state.amended) > 1 else state.planned
    if named := text.caps_changed(earlier.caps, state.plan.caps):
        print_line(f"{named}.")
    planned = counted(state.plan.resolved.generations, "generation")
    print_line(f"{directory}: amended. Planned: {planned}.")
    print_line(text.sentence(found))
    print_line("Repeat the command that began it to go on.")


exports = group("For other programs.", "export slurm search.toml", "export table --out scores.csv")
exports.command(
    "slurm",
    epilog=examples("export slurm search.toml", "export slurm campaign.toml --out jobs --write"),
)(slurm)
exports.command("optuna", epilog=examples("export optuna min-nanochat-s1 --out study.db"))(as_study)


@exports.command(epilog=examples("export table", "export table min-nanochat-s1 --format json"))
def table(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    kind: Annotated[Format, Option("--format", help="Of the table.")] = "csv",
    out: Annotated[
        Path | None, Option("--out", metavar="FILE", help="Where to; default: print it.")
    ] = None,
) -> None:
    """Every evaluation as a row: place, status, score, cost, knobs, metrics.

    Writes nothing but the file --out.
    """
    if kind == "parquet" and out is None:
        raise ValueError("--format parquet: say which file with --out, it is not for terminals")
    if out is not None:
        named_file("--out", out)
    data = export(load_state(find_run(run, root)), kind, out)
    if out is None:
        write_bytes(data)
    else:
        print_line(f"{out}: {len(data)} bytes")


@exports.command(epilog=examples("export shards --out shards --shards 4"))
def shards(
    out: Annotated[Path, Option("--out", metavar="DIR", help="Where to; it must not exist.")],
    data: Annotated[
        str,
        Option("--data", metavar="DATA", help="A file, a folder, hf:NAME, ..."),
    ] = str(NanochatConfig.model_fields["data"].default),
    count: Annotated[
        int, Option("--shards", metavar="N", help="Files to train on; one more is held out.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """A text as the Parquet shards karpathy/nanochat trains on: the same split, the last held out.

    Writes the directory --out.
    """
    from objectives.nanochat.shards import write

    if not out.name or not str(out).isprintable():
        raise ValueError(f"--out: expected a directory's name, got {str(out)!r}")
    written = write(data, out, count)
    if as_json:
        print_json(written)
        return
    files = written["files"]
    said = (
        "{directory}: {train_documents:,} documents of {train_bytes:,} bytes to train on in "
        "{count}, {val_documents:,} of {val_bytes:,} held out in {last}."
    )
    line = said.format(count=counted(len(files) - 1, "file"), last=files[-1], **written)
    print_line(printable(line))
