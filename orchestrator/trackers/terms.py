"""What a tracker is told once: the plan before the first figure, and what came of it at the end.

No disk. Secrets are left out of both.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from budgets.plain import one_line
from budgets.report.model import budget_report
from budgets.state import RunState
from budgets.terms import Plan
from budgets.verdict.findings import title
from objectives import secrets
from orchestrator.records.recommended import best_of
from orchestrator.trackers.figures import currency, plain_name

Value = str | int | float | bool

LONGEST = 500
"""Characters of a text: what is longer is shortened."""


def config(plan: Plan, environment: Mapping[str, str]) -> dict[str, Value]:
    """The plan as flat names and values, `objective/settings/n_layer`: what is empty is left out.

    What has a name has it instead of its place in a list: `space/knobs/tau_c/low`. A calibration is
    there by what it measured. `environment` is where secrets are that must not be in it.
    """
    fields = plan.model_dump(mode="json", exclude={"calibration"})
    if (calibration := plan.calibration) is not None:
        fields["calibration"] = {
            "seeds": len(calibration.samples),
            "mean_score": calibration.mean_score,
            "sd_score": calibration.sd_score,
            "median_seconds": calibration.median_seconds,
            "p90_seconds": calibration.p90_seconds,
        }
    return {name: _safe(name, value, environment) for name, value in _flat("", fields)}


def summary(state: RunState, environment: Mapping[str, str]) -> dict[str, Value]:
    """What the run has come to as its records say: decision, verdict, recommendation, price."""
    return {name: _safe(name, value, environment) for name, value in _come_to(state)}


def _come_to(state: RunState) -> Iterator[tuple[str, Value]]:
    """By the names that figures have, where there are such."""
    report = budget_report(state)
    yield "decision", report.decision
    yield "sentence", report.sentence
    yield from _verdict(state)
    yield from _recommended(state)
    if report.luckiest_score is not None:
        yield "luckiest_score", report.luckiest_score
    for status, count in sorted(report.evaluations_by_status.items()):
        yield f"evaluations_by_status/{status}", count
    for balance in report.balances:
        if balance.counts:
            yield f"budget/spent/{currency(balance)}", balance.spent
    if report.timing is not None:
        yield from report.timing.metrics().items()
    yield "ledger/records", state.records
    yield "ledger/head", state.head


def _verdict(state: RunState) -> Iterator[tuple[str, Value]]:
    decided = state.decided
    if decided is None:
        return
    yield "verdict/title", title(decided.grade, decided.no_go)
    found = decided.grade, decided.no_go, decided.gain, decided.lower, decided.evidence
    for name, value in zip(("grade", "no_go", "gain", "lower", "evidence"), found, strict=True):
        if value is not None:
            yield f"verdict/{name}", value


def _recommended(state: RunState) -> Iterator[tuple[str, Value]]:
    """The knobs, and how far they are confirmed; of a run that recommends nothing yet nothing."""
    try:
        found = best_of(state)
    except ValueError:
        return
    yield "standing", found.standing
    for knob, value in found.space.decode(found.recommended).items():
        yield f"recommended/{plain_name(knob)}", value


def _flat(name: str, value: Any) -> Iterator[tuple[str, Value]]:
    match value:
        case dict():
            for key, inner in value.items():
                own = plain_name(str(key))
                yield from _flat(f"{name}/{own}" if name else own, inner)
        case list() if all(isinstance(part, dict) and "name" in part for part in value):
            for part in value:
                rest = {key: inner for key, inner in part.items() if key != "name"}
                yield from _flat(f"{name}/{plain_name(str(part['name']))}", rest)
        case None | "":
            return
        case str() | bool() | int() | float():
            yield name, value
        case _:
            yield name, orjson.dumps(value).decode()


def _safe(name: str, value: Value, environment: Mapping[str, str]) -> Value:
    """The value, or text in its place that says no secret and is not too long."""
    key = f"{name.rpartition('/')[2]}="
    text = secrets.redacted(f"{key}{value}", environment).removeprefix(key)
    if not isinstance(value, str) and text == str(value):
        return value
    return one_line(text, LONGEST)
