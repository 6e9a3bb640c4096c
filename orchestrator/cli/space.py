"""`space show` and `space check`: which knobs there are, and whether each moves the score."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from typer import Context, Option

from budgets.plain import plain
from budgets.table import table
from budgets.words import counted
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.checks.space import CHECK_SEEDS, LEAST_SEEDS, CheckRequest
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.given import names_of, resolved_of
from orchestrator.cli.options import BESIDE, FILE, TUNED, Command, Json, taking
from orchestrator.cli.program import examples, group
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import MOST_SEEDS
from orchestrator.planning.configured import Conduct, conduct_of, terms_of
from orchestrator.running.checking import Checking

spaces = group("The knobs, and whether they matter.", "space show")


def run_check(request: CheckRequest, how: Conduct) -> None:
    """Evaluate every knob at the ends of its range; go on if that was begun."""
    with conducting(how) as (session, live):
        result = Checking(request, how.engine.slots()).carry_out(session)
        finish(result, session.stop, live, how.as_json)


def check_command(act: Callable[[CheckRequest, Conduct], None]) -> Command:
    """What takes the options of a check, and makes its request of them."""

    @taking(FILE, TUNED, BESIDE)
    def check(
        context: Context,
        seeds: Annotated[
            int,
            Option(
                "--seeds",
                metavar="N",
                min=LEAST_SEEDS,
                max=MOST_SEEDS,
                help="Evaluations of every point.",
            ),
        ] = CHECK_SEEDS,
        knobs: Annotated[
            str | None, Option("--knobs", metavar="A,B", help="Only these; default: all.")
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Test whether each knob moves the score, in units of the noise; the same command resumes.

        Writes a run, RUNS_DIR/check/ID.
        """
        resolved = resolved_of(context)
        request = CheckRequest(terms_of(resolved), seeds, names_of(knobs))
        act(request, conduct_of(resolved, as_json=as_json))

    return check


spaces.command(
    epilog=examples("space check", "space check --set space=optimizer --knobs momentum")
)(check_command(run_check))


@spaces.command(epilog=examples("space show", "space show --set space=optimizer"))
@taking(FILE, TUNED)
def show(context: Context, as_json: Json = False) -> None:
    """The knobs: name, kind, range and baseline, in the knob's own unit. Writes nothing."""
    chosen = resolved_of(context).load_objective()
    rows = knob_rows(chosen)
    if as_json:
        print_json({"objective": chosen.spec.model_dump(mode="json"), "knobs": rows})
    else:
        print_markdown(to_markdown(kind(chosen.spec), rows))


def knob_rows(objective: Objective) -> list[dict[str, Any]]:
    """One row a knob, in the order of the space."""
    return [
        {
            "name": knob.name,
            "kind": knob.kind,
            "low": knob.decode(0.0),
            "high": knob.decode(1.0),
            "baseline": knob.typed(knob.baseline),
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
