"""`best`: what a search recommends."""

import sys
from typing import Annotated

from typer import Option

from budgets.formatting import printable
from budgets.plan import Phase
from orchestrator.best import as_dict, best_of, configuration_of, headline, to_lines
from orchestrator.cli.options import ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.records.runs import find_run, load_state


def best(
    run: RunName = None,
    as_toml: Annotated[
        bool, Option("--toml", help="Print a configuration file with this baseline.")
    ] = False,
    as_flags: Annotated[
        bool, Option("--flags", help="Print it as arguments of what is tuned, for a shell.")
    ] = False,
    root: Root = ROOT,
    as_json: Json = False,
) -> None:
    """The configuration that a search recommends, and how far that is confirmed. Writes nothing.

    After a No-Go, --toml and --flags give the baseline, --json the best candidate too.
    """
    if as_json + as_toml + as_flags > 1:
        raise ValueError("--json, --toml, --flags: one at a time")
    searches: tuple[Phase, ...] = () if run is not None else ("phase1", "phase2")
    directory = find_run(run, root, *searches)
    found = best_of(load_state(directory), directory)
    plan, is_no_go = found.run.plan, found.standing == "no_go"
    candidate = configuration_of(plan, found.candidate)
    recommended = configuration_of(plan, found.recommended) if is_no_go else candidate
    source = (
        f"{plan.run_id}: the {'baseline' if is_no_go else 'best candidate'}.",
        headline(found),
    )
    if as_json:
        print_json(as_dict(found, recommended, candidate))
    elif as_toml:
        print_line(recommended.toml(*source).rstrip("\n"))
    elif as_flags:
        line = recommended.flags()
        print(printable(" ".join(source)), file=sys.stderr)
        print_line(line)
    else:
        for line in to_lines(found, candidate):
            print_line(printable(line))
