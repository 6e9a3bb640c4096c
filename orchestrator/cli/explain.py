"""`explain`: every rule, its thresholds, and what it observes in a run."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context

from budgets.plain import plain
from budgets.rules.table import TABLE
from budgets.rules.text import as_dict, evidence_lines, rules_table, seen, seen_table
from budgets.terms import Thresholds
from orchestrator.cli.explain_file import explain_file
from orchestrator.cli.given import resolved_of
from orchestrator.cli.options import (
    DEFAULT_ROOT,
    LAID_OVER,
    Json,
    Root,
    taking,
)
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.records.recorded import find_run, load_state


@taking(LAID_OVER)
def explain(
    context: Context,
    run: Annotated[
        str | None,
        Argument(
            metavar="RUN|FILE", help="A run, to see what fires; or a configuration, its values."
        ),
    ] = None,
    root: Root = DEFAULT_ROOT,
    as_json: Json = False,
) -> None:
    """Every rule, its thresholds and what it observes in a run; or a file's values and origins.

    --set, --preset, --profile: the file with these.

    Writes nothing.
    """
    if run is not None and _is_a_configuration(Path(run)):
        explain_file(resolved_of(context, Path(run)), as_json=as_json)
        return
    if any(context.params[option.name] for option in LAID_OVER):
        raise ValueError(f"--set, --preset, --profile are for a configuration file, got {run!r}")
    if run is None:
        limits = Thresholds()
        directory, saw = None, {}
        lines = ["# Rules", "", *rules_table(limits)]
    else:
        directory = find_run(run, root)
        state = load_state(directory)
        limits = state.plan.thresholds
        saw = seen(state)
        title = f"# Rules of {plain(state.plan.run_id)}"
        evidence = [plain(line) for line in evidence_lines(saw)]
        lines = [title, "", *seen_table(limits, saw), "", *evidence]
    if as_json:
        rows = [as_dict(rule, limits, saw.get(rule.name)) for rule in TABLE]
        where = None if directory is None else str(directory)
        print_json({"directory": where, "rules": rows})
    else:
        print_markdown("\n".join(lines))


def _is_a_configuration(named: Path) -> bool:
    """Also one that is not there, by its name: a run has no such id."""
    return named.is_file() or (named.suffix == ".toml" and not named.is_dir())
