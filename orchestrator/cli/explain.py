"""`explain`: every value of a configuration, and its knobs; or the rules of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context

from budgets.events import Fired
from budgets.plain import plain
from budgets.rules import RULES, TABLE, Reading
from budgets.ruling import is_overridden, readings
from budgets.state import RunState
from budgets.table import table
from budgets.terms import Thresholds
from budgets.verdict.conditions import Condition, conditions
from budgets.words import number
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
    rows = rule_rows(state)
    if as_json:
        print_json({"directory": str(directory), "rules": rows})
        return
    seen = {row["rule"]: row["seen"] for row in rows if row["seen"]}
    evidence = [plain(f"- {rule}: {one['evidence']}") for rule, one in seen.items()]
    title = f"# Rules of {plain(state.plan.run_id)}"
    print_markdown("\n".join([title, "", *rules_table(rows), "", *evidence]))


def _is_a_configuration(named: Path) -> bool:
    """Also one that is not there, by its name: a run has no such id."""
    return named.is_file() or (named.suffix == ".toml" and not named.is_dir())


def rule_rows(state: RunState | None = None) -> list[dict[str, Any]]:
    """Every rule with its limits, and what it sees in the run; without one, the defaults."""
    limits = Thresholds() if state is None else state.plan.thresholds
    seen = {} if state is None else _seen(state)
    return [
        {
            "rule": rule.name,
            "about": rule.about,
            "limits": rule.limits(limits),
            "defaults": rule.limits(Thresholds()),
            "decision": rule.decision,
            "overridable": rule.overridable,
            "seen": seen.get(rule.name),
        }
        for rule in TABLE.values()
    ]


def _seen(state: RunState) -> dict[str, dict[str, Any]]:
    """What each rule that has something to look at observes; of several batches where it fires."""
    found: list[tuple[Fired | Reading | Condition, bool, bool]] = []
    if state.ended is not None:
        found.append((state.ended, True, False))
    for one in sorted(readings(state), key=lambda reading: reading.fires):
        found.append((one, one.fires, one.fires and is_overridden(state, one)))
    found += [(condition, not condition.met, False) for condition in conditions(state)]
    return {
        one.rule: {
            "observed": one.observed,
            "limit": one.limit,
            "evidence": one.evidence,
            "fires": fires,
            "overridden": overridden,
        }
        for one, fires, overridden in found
    }


def rules_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """As Markdown; with what the rules see, where any of the rows has that."""
    columns = ["rule", "looks at", "limits", "leads to"]
    if any(row["seen"] for row in rows):
        columns += [">observed / limit", "fires"]
    return table(columns, (_cells(row)[: len(columns)] for row in rows))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    limits, leads_to = [], row["decision"]
    for name, value in row["limits"].items():
        own, default = (number(one, 6, "none") for one in (value, row["defaults"][name]))
        limits.append(f"`{name}` {own}" + f" (default {default})" * (own != default))
    if row["rule"] in RULES:
        leads_to += ", can be overridden" if row["overridable"] else ", no override"
    seen = row["seen"] or {"observed": None, "limit": None, "fires": None, "overridden": False}
    observed, limit = (number(seen[name], 4) for name in ("observed", "limit"))
    if seen["observed"] is not None and seen["limit"] is not None:
        observed += f" / {limit}"
    fires = {None: "-", False: "no", True: "**yes**"}[seen["fires"]]
    fires = "overridden" if seen["overridden"] else fires
    return row["rule"], row["about"], ", ".join(limits) or "-", leads_to, observed, fires
