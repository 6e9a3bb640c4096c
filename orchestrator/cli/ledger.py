"""`verify` and `amend`: replay a run's ledger, salvage a damaged one, change a run's caps."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Context, Option

from budgets.formatting import counted, move_command, printable
from budgets.ledger import damaged
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
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.look import text
from orchestrator.look.document import document
from orchestrator.look.reports import rebuild
from orchestrator.look.run import Run
from orchestrator.plan.resolve import window_of
from orchestrator.records.recorded import find_run
from orchestrator.running.amend import Amendment
from orchestrator.running.amend import amend as amend_run
from orchestrator.running.session import system_clock

Salvage = Annotated[
    Path | None,
    Option("--salvage", metavar="DIR", help="Copy what is whole of a damaged ledger to DIR."),
]


def verify(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    accept_drift: AcceptDrift = False,
    salvage: Salvage = None,
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
    from orchestrator.verification.verify import verify as replay  # imports cma

    found = replay(directory, accept_drift=accept_drift)
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
    from orchestrator.running.salvage import salvage as save

    saved = save(source, out)
    rebuild(out, system_clock().now())
    if as_json:
        print_json({**asdict(saved), "out": str(out)})
        return
    print_line(f"Kept {saved.records} records in {saved.out}.")
    print_line(
        f"Lost: {saved.lost_records} known records, {saved.lost_bytes} bytes. Why: {saved.why}."
    )
    print_line("Its next session settles what is open, from the results in eval/ where they are.")
    print_line("To go on, put it in the old one's place and repeat the run's command:")
    aside = move_command(source, damaged(source))
    print_line(f"  {aside} && {move_command(saved.out, source)}")


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
