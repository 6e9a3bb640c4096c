"""The rules as `explain RUN` shows them: limits, and what each sees in the run."""

from collections.abc import Mapping, Sequence
from typing import Any

from budgets.events import Fired
from budgets.formatting import number, table
from budgets.plan import Thresholds
from budgets.rules import RULES, TABLE, Reading, is_overridden, readings
from budgets.state import RunState
from budgets.verdict import Condition, conditions


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
