"""`space show` and `space check`: which knobs there are, and whether each moves the score."""

from collections.abc import Sequence
from typing import Any

import typer
from rich.markdown import Markdown
from typer import Context

from budgets.plain import plain
from budgets.table import table
from budgets.words import counted
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.cli.options import (
    AskedCheck,
    ConfigFile,
    Json,
    ObjectiveName,
    Settings,
    check_command,
    resolved_of,
)
from orchestrator.cli.terminal import conducting, console, examples, finish, print_json

spaces = typer.Typer(
    help="The knobs, and whether they matter.",
    no_args_is_help=True,
    epilog=examples("space show"),
)


def run_check(asked: AskedCheck) -> None:
    """Evaluate every knob at the ends of its range; go on if that was begun."""
    with conducting(asked.conduct) as (session, live):
        result = session.check(asked.request, asked.conduct.engine.slots())
        finish(result, session.stop, live, asked.conduct.as_json)


spaces.command(
    "check",
    help="Whether each knob moves the score, in units of the noise; the same command resumes.\n\n"
    "Writes a run, RUNS_DIR/check/ID.",
    epilog=examples("space check", "space check --set space=optimizer --knobs momentum"),
)(check_command(run_check))


@spaces.command(epilog=examples("space show", "space show --set space=optimizer"))
def show(
    context: Context,
    config: ConfigFile = None,
    objective: ObjectiveName = "nanochat",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """The knobs: name, kind, range and baseline, in the knob's own unit. Writes nothing."""
    chosen = resolved_of(context, context.params).objective
    rows = knob_rows(chosen)
    if as_json:
        print_json({"objective": chosen.spec.model_dump(mode="json"), "knobs": rows})
    else:
        console().print(Markdown(to_markdown(kind(chosen.spec), rows)))


def knob_rows(objective: Objective) -> list[dict[str, Any]]:
    """One row a knob, in the order of the space."""
    return [
        {
            "name": knob.name,
            "kind": knob.kind,
            "low": knob.decode(0.0),
            "high": knob.decode(1.0),
            "baseline": knob.baseline,
        }
        for knob in objective.space.knobs
    ]


def to_markdown(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a table."""
    lines = [
        f"# {plain(name)}: {counted(len(rows), 'knob')}",
        "",
        *table(("knob", "kind", ">low", ">high", ">baseline"), map(_cells, rows)),
        "",
    ]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ends = (f"{row[name]:.4g}" for name in ("low", "high", "baseline"))
    return row["name"], row["kind"], *ends
