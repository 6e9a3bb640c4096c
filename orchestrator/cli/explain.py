"""`explain`: every value of a configuration, and its knobs; or the rules of a run."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context

from budgets.plain import plain
from budgets.rules.table import TABLE
from budgets.rules.text import as_dict, evidence_lines, seen, seen_table
from orchestrator.cli.explain_file import explain_file
from orchestrator.cli.given import is_given, resolved_of
from orchestrator.cli.options import DEFAULT_ROOT, TUNED, Json, Root, taking
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.records.recorded import find_run, load_state


@taking(TUNED)
def explain(
    context: Context,
    run: Annotated[
        str | None,
        Argument(metavar="FILE|RUN", help="A configuration; or a run, to see its rules."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    as_json: Json = False,
) -> None:
    """Every value of a configuration, where it is from, and the knobs; or a run's rules.

    Writes nothing.
    """
    if run is None or _is_a_configuration(Path(run)):
        file = None if run is None else Path(run)
        explain_file(resolved_of(context, file), as_json=as_json)
        return
    if any(is_given(context, option.name) for option in TUNED):
        raise ValueError(
            f"--objective, --set, --preset, --profile are for a configuration file, got {run!r}"
        )
    directory = find_run(run, root)
    state = load_state(directory)
    limits, saw = state.plan.thresholds, seen(state)
    if as_json:
        rows = [as_dict(rule, limits, saw.get(rule.name)) for rule in TABLE]
        print_json({"directory": str(directory), "rules": rows})
        return
    evidence = [plain(line) for line in evidence_lines(saw)]
    title = f"# Rules of {plain(state.plan.run_id)}"
    print_markdown("\n".join([title, "", *seen_table(limits, saw), "", *evidence]))


def _is_a_configuration(named: Path) -> bool:
    """Also one that is not there, by its name: a run has no such id."""
    return named.is_file() or (named.suffix == ".toml" and not named.is_dir())
