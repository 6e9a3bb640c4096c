"""The rules as a table for a person: what each looks at, its limits, what it sees in a run."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from budgets.rules.table import HOLDING_UP, TABLE, Rule
from budgets.rules.triggers import readings
from budgets.state import RunState
from budgets.table import table
from budgets.terms import Thresholds
from budgets.verdict.conditions import conditions
from budgets.words import number

COLUMNS = ("rule", "looks at", "limits", "leads to")


class Seen(NamedTuple):
    """What a rule sees in a run as it stands."""

    observed: float | None
    limit: float | None
    evidence: str
    fires: bool
    overridden: bool = False


def seen(state: RunState) -> dict[str, Seen]:
    """By the name of the rule; of rules that have nothing to look at yet, nothing."""
    passed = {(o.rule, o.generation) for o in state.overridden}
    found: dict[str, Seen] = {}
    if (ended := state.ended) is not None:
        found[ended.rule] = Seen(ended.observed, ended.limit, ended.evidence, fires=True)
    for r in sorted(readings(state), key=lambda reading: reading.fires):  # one that fires is last
        waived = r.overridable and (r.rule, r.generation) in passed
        found[r.rule] = Seen(r.observed, r.limit, r.evidence, r.fires, r.fires and waived)
    for c in conditions(state):
        found[c.rule] = Seen(c.observed, c.limit, c.evidence, not c.met)
    return found


def as_dict(rule: Rule, thresholds: Thresholds, saw: Seen | None = None) -> dict[str, Any]:
    """A row for a program."""
    return {
        "rule": rule.name,
        "about": rule.about,
        "limits": rule.limits(thresholds),
        "defaults": rule.limits(Thresholds()),
        "decision": rule.decision,
        "overridable": rule.overridable,
        "seen": None if saw is None else saw._asdict(),
    }


def rules_table(thresholds: Thresholds) -> list[str]:
    """Every rule with its limits, as Markdown."""
    return table(COLUMNS, (_row(rule, thresholds) for rule in TABLE))


def seen_table(thresholds: Thresholds, saw: Mapping[str, Seen]) -> list[str]:
    """The same with what each rule sees, and below it the evidence."""
    rows = (
        (*_row(rule, thresholds), _observed(saw.get(rule.name)), _fires(saw.get(rule.name)))
        for rule in TABLE
    )
    return table((*COLUMNS, ">observed / limit", "fires"), rows)


def _row(rule: Rule, thresholds: Thresholds) -> tuple[str, ...]:
    return rule.name, rule.about, _limits(rule, thresholds), _leads_to(rule)


def evidence_lines(saw: Mapping[str, Seen]) -> list[str]:
    """What each rule has to say, in the table's order."""
    return [f"- {rule.name}: {saw[rule.name].evidence}" for rule in TABLE if rule.name in saw]


def _limits(rule: Rule, thresholds: Thresholds) -> str:
    said, usual = [], rule.limits(Thresholds())
    for name, value in rule.limits(thresholds).items():
        own, default = (number(each, 6, "none") for each in (value, usual[name]))
        said.append(f"`{name}` {own}" + f" (default {default})" * (value != usual[name]))
    return ", ".join(said) or "-"


def _observed(saw: Seen | None) -> str:
    if saw is None or saw.observed is None:
        return "-"
    return f"{saw.observed:.4g}" if saw.limit is None else f"{saw.observed:.4g} / {saw.limit:.4g}"


def _fires(saw: Seen | None) -> str:
    if saw is None:
        return "-"
    if saw.overridden:
        return "overridden"
    return "**yes**" if saw.fires else "no"


def _leads_to(rule: Rule) -> str:
    if rule not in HOLDING_UP:
        return rule.decision
    return f"{rule.decision}, {'can be overridden' if rule.overridable else 'no override'}"
