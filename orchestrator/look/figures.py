"""What experiment trackers are sent of a run: figures by name, the plan, and what came of it.

All figures share one axis: evaluations that are over. docs/trackers.md lists the names. A name is
never the beginning of another one's path: a tracker may keep `a/b` as a file in a directory `a`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from budgets.events import Decided, GenerationTold, Settled, Status
from budgets.ledger.chain import Record
from budgets.plain import one_line
from budgets.state import RunState
from budgets.terms import Plan
from budgets.verdict.findings import title
from objectives import secrets
from orchestrator.look import text
from orchestrator.look.rows import Balance
from orchestrator.look.run import Run
from orchestrator.records.metrics import IN_TIME, measured
from orchestrator.records.recommended import best_of

Value = str | int | float | bool

OF_EVALUATION = (
    *("score", "seconds", "step_time_s", "tokens_per_second", "steps", "train_flops"),
    "peak_memory_bytes",
)
"""Evaluations of different lengths do not share these: each kind has a curve of its own."""

LONGEST = 500
"""Characters of a text: what is longer is shortened."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Figures:
    """Finite numbers of one moment of a run."""

    record: int  # of the ledger
    step: int  # evaluations that were over by then
    at: float  # seconds since 1970, of the record
    values: Mapping[str, float]


@dataclass
class Reading:
    """Turns one ledger's records into figures, from its first record on."""

    _ended: Counter[str] = field(default_factory=Counter)  # by status; `again`: without a result

    def figures(self, state: RunState, record: Record) -> Figures | None:
        """Return what this record adds, `state` being the run's once it is applied."""
        at = datetime.fromisoformat(record.at)
        match event := record.event:
            case Settled():
                values = dict(self._evaluation(Run(state, at), event))
            case GenerationTold():
                values = dict(_generation(Run(state, at), event))
            case Decided():
                values = dict(_of(("verdict/gain", event.gain), ("verdict/lower", event.lower)))
            case _:
                return None
        return Figures(record.seq, _step(state), at.timestamp(), values) if values else None

    def _evaluation(self, run: Run, event: Settled) -> Iterator[tuple[str, float]]:
        self._ended[str(event.status) if event.again is None else "again"] += 1
        if not event.final:
            return
        found = measured(run.state, event)
        for name in OF_EVALUATION:
            if name == "score" or found[name]:  # what an objective does not have is 0
                yield from _of((_curve(run.state, event, name), found[name]))
        yield from _of(*((name, found[name]) for name in ("elapsed_seconds", *IN_TIME)))
        for name, value in event.metrics.items() if event.panel is None else ():
            yield from _of((_curve(run.state, event, f"objective/{plain_name(name)}"), value))
        usual = [str(status) for status in Status if status.final]
        for status in dict.fromkeys([*usual, *sorted(self._ended)]):
            yield f"status/{status}", float(self._ended[status])
        for balance in run.balances:
            if balance.counts:
                name = _currency(balance)
                yield f"budget/spent/{name}", balance.spent
                yield f"budget/reserved/{name}", balance.reserved
                yield from _of((f"budget/cap/{name}", balance.cap))
                yield from _of((f"budget/free/{name}", balance.free))


def _generation(run: Run, event: GenerationTold) -> Iterator[tuple[str, float]]:
    row = next(one for one in run.generations if one.number == event.generation)
    place = "short" if row.is_short else "generation"
    yield from _of(
        (f"{place}/best", row.best),
        (f"{place}/mean", row.mean),
        (f"{place}/sd", row.sd),
        ("generation/best_so_far", row.best_so_far),
        ("generation/number", row.number),
        ("generation/healthy", row.healthy),
        ("generation/failed", row.failed),
        ("generation/sigma", row.step_size),
        ("generation/axis_ratio", row.axis_ratio),
        ("generation/descent", event.descent),
        ("generation/eval_seconds", row.eval_seconds),
    )
    if event.guided is not None:
        yield "generation/signal", event.guided.signal
        yield "generation/noise", event.guided.noise
    if run.baseline is not None:
        yield "baseline/score", run.baseline.mean
    if run.noise_band is not None:
        yield "baseline/noise_low", run.noise_band[0]
        yield "baseline/noise_high", run.noise_band[1]
    yield from _of(("baseline/best_by_luck", row.luck_so_far))
    yield "budget/idle_device_hours", run.idle_hours
    yield "budget/wasted_device_hours", run.wasted_hours


def _step(state: RunState) -> int:
    return state.accounts.evaluations + state.accounts.apart


def _of(*pairs: tuple[str, float | None]) -> Iterator[tuple[str, float]]:
    """Those that are there, as finite numbers."""
    for name, value in pairs:
        if value is not None and math.isfinite(value):
            yield name, float(value)


def _curve(state: RunState, event: Settled, name: str) -> str:
    """Return the figure's curve: one curve has scores of one kind and length only."""
    if event.panel is not None:
        arm = state.panels[event.panel, event.generation].arms[event.candidate].name
        own = f"score/{plain_name(arm)}" if name == "score" else name
        return f"{event.panel}/{own}"
    if state.plan.campaign is not None:
        condition = state.plan.campaign.conditions[event.candidate].name
        return f"condition/{plain_name(condition)}/{name}"
    return name if state.generation(event.generation).is_full else f"short/{name}"


def _currency(balance: Balance) -> str:
    return re.sub(r"[ -]", "_", balance.currency)


def plain_name(said: str) -> str:
    """Return it as one part of a name that every tracker takes, and no part of a path."""
    name = _UNFIT.sub("_", said)[:100]
    return name if name.strip(".") else f"_{name}"


def config(plan: Plan, environment: Mapping[str, str]) -> dict[str, Value]:
    """The plan as flat names and values, `objective/settings/n_layer`: what is empty is left out.

    Entries of a list go by their names: `space/knobs/tau_c/low`. Of a calibration there is what it
    measured. Secrets, those in `environment` among them, are left out.
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


def summary(run: Run, environment: Mapping[str, str]) -> dict[str, Value]:
    """What the run has come to: decision, verdict, recommendation, what it cost."""
    return {name: _safe(name, value, environment) for name, value in _come_to(run)}


def _come_to(run: Run) -> Iterator[tuple[str, Value]]:
    state, decided = run.state, run.state.decided
    yield "decision", run.decision
    yield "sentence", text.sentence(run)
    if decided is not None:
        yield "verdict/title", title(decided.grade, decided.no_go)
        for name in ("grade", "no_go", "gain", "lower", "evidence"):
            if (value := getattr(decided, name)) is not None:
                yield f"verdict/{name}", value
    try:
        found = best_of(state)
    except ValueError:  # it recommends nothing
        pass
    else:
        yield "standing", found.standing
        for knob, value in found.space.decode(found.recommended).items():
            yield f"recommended/{plain_name(knob)}", value
    if run.is_search and run.best_so_far is not None:
        yield "luckiest_score", run.best_so_far
    for status, count in sorted(run.evaluations_by_status.items()):
        yield f"evaluations_by_status/{status}", count
    for balance in run.balances:
        if balance.counts:
            yield f"budget/spent/{_currency(balance)}", balance.spent
    if run.timing is not None:
        yield from run.timing.metrics().items()
    yield "ledger/records", state.records
    yield "ledger/head", state.head


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
    said = secrets.redacted(f"{key}{value}", environment).removeprefix(key)
    if not isinstance(value, str) and said == str(value):
        return value
    return one_line(said, LONGEST)
