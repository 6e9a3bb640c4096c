"""`verify`, `amend` and `ledger head|salvage|export`: what can be done with a ledger by hand."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Context, Option

from budgets.ledger.chain import LEDGER, damaged, read
from budgets.ledger.head import read_mark, records_lost
from budgets.plain import move_command, printable
from budgets.words import counted
from orchestrator.cli.errors import EXIT_CORRUPT
from orchestrator.cli.options import (
    BUDGET,
    DEFAULT_ROOT,
    SETTINGS,
    AcceptDrift,
    GivenRun,
    Json,
    Root,
    RunName,
    for_record,
    only_of,
    resolved_of,
    taking,
)
from orchestrator.cli.program import examples, group
from orchestrator.cli.terminal import print_json, print_line, write_bytes
from orchestrator.look import text
from orchestrator.look.document import document
from orchestrator.look.page import named_file
from orchestrator.look.reports import rebuild
from orchestrator.look.run import Run
from orchestrator.planning.window import window_of
from orchestrator.records.export import Format
from orchestrator.records.export import export as export_run
from orchestrator.records.recorded import find_run, load_state
from orchestrator.running.amend import Amendment
from orchestrator.running.amend import amend as amend_run
from orchestrator.running.session import system_clock

ledgers = group("Read, repair and export a run's ledger.", "ledger head min-nanochat-s1")


def verify(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    accept_drift: AcceptDrift = False,
    as_json: Json = False,
) -> None:
    """Replay a run from its ledger and name the first divergence. Writes nothing."""
    from orchestrator.verification.verify import verify as replay  # imports cma

    found = replay(find_run(run, root), accept_drift=accept_drift)
    if as_json:
        print_json(asdict(found))
    else:
        for line in found.held:
            print_line(f"ok    {line}")
        failure = f"FAIL  {found.divergence}"
        print_line(printable(failure) if found.divergence else f"head  {found.head}")
    if found.divergence:
        raise typer.Exit(EXIT_CORRUPT)


@ledgers.command(epilog=examples("ledger head min-nanochat-s1"))
def head(run: RunName = None, root: Root = DEFAULT_ROOT, as_json: Json = False) -> None:
    """The last record's number and its hash, which seals all before it. Writes nothing."""
    path = find_run(run, root) / LEDGER
    reading = read(path)
    if not reading.records:
        raise ValueError(f"{path} holds no whole record yet")
    records, mark = reading.records, read_mark(path)
    answer: dict[str, Any] = {
        "ledger": str(path),
        "record": records[-1].seq,
        "head": records[-1].digest,
        "bytes": records[-1].end,
        "torn_bytes": len(reading.torn),
        "marked_record": None if mark is None else mark.seq,
        "lost_records": records_lost(path, len(records), lambda seq: records[seq].digest),
    }
    if as_json:
        print_json(answer)
    else:
        for name, value in answer.items():
            print_line(f"{name.replace('_', ' '):14s} {'-' if value is None else value}")


@ledgers.command(epilog=examples("ledger salvage min-nanochat-s1 --out saved"))
def salvage(
    run: GivenRun,
    out: Annotated[
        Path, Option("--out", metavar="DIR", help="A new directory for what can be kept.")
    ],
    root: Root = DEFAULT_ROOT,
    as_json: Json = False,
) -> None:
    """Keep the whole records of a damaged or rolled back ledger in a new directory, --out."""
    from orchestrator.running.salvage import salvage as save

    source = find_run(run, root)
    saved = save(source, out, system_clock())
    rebuild(out, system_clock().now())
    if as_json:
        print_json({**asdict(saved), "out": str(out)})
        return
    print_line(f"Kept {saved.records} records in {saved.out}.")
    print_line(
        f"Lost: {saved.lost_records} records that are known of, {saved.lost_bytes} bytes. "
        f"Why: {saved.why}."
    )
    print_line(
        f"Open reservations: {saved.adopted} had finished and are recovered, {saved.charged} are "
        "charged as lost. What was settled in lost records is taken over from eval/ where it is."
    )
    print_line("To go on, put it in the old one's place and repeat the run's command:")
    aside = move_command(source, damaged(source))
    print_line(f"  {aside} && {move_command(saved.out, source)}")


@ledgers.command(epilog=examples("ledger export", "ledger export min-nanochat-s1 --format json"))
def export(
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
    data = export_run(load_state(find_run(run, root)), kind, out)
    if out is None:
        write_bytes(data)
    else:
        print_line(f"{out}: {len(data)} bytes")


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
    found = Run(state, system_clock().now(), directory)
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
