"""A run as JSON: the document that `status` and `report` print, and the one of `best`.

`tests/approved/keys.txt` lists the keys. The replayed distribution and the loss curves are left
out: they are only drawn.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from budgets.formatting import one_line
from budgets.verdict import Point, recommendation, winner
from objectives.secrets import redacted
from orchestrator.look import text
from orchestrator.look.answer import answer, in_short
from orchestrator.look.files import measured_in
from orchestrator.look.run import Run

SCHEMA = 1
"""Raised when a key goes, or changes its meaning."""

plain_values = to_jsonable_python

FACTS = (
    *("objective", "decision", "last", "counts", "evaluations_by_status", "balances", "deadline"),
    *("usage", "pace", "timing", "eval_seconds", "generations", "attempts", "slots", "failures"),
    *("baseline", "noise_band", "best_so_far", "best_by_chance", "knobs"),
    *("findings", "gains", "check", "proxy", "campaign", "matrix"),
)
"""Properties of `Run` under their own names."""


def document(run: Run) -> dict[str, Any]:
    """Return the run as plain JSON values."""
    plan, state, point = run.plan, run.state, recommendation(run.state)
    return {
        "schema": SCHEMA,
        "run_id": plan.run_id,
        "directory": None if run.directory is None else str(run.directory),
        "phase": plan.phase,
        "tier": plan.tier,
        "standing": run.standing.kind,
        "whose": run.standing.whose,
        "answer": plain_values(answer(run)),
        "score": measured_in(state),
        "devices": text.devices(run),
        "generations_finished": state.finished,
        "generations_planned": plan.resolved.generations,
        "recommendation": point and _place(run, point),
        "at_range_ends": _range_ends(run),
        "triggers": text.rules(state, state.fired),
        "overrides": text.rules(state, state.overridden),
        "amendments": [text.amended(one) for one in state.amended],
        "sessions": [plain_values(one) for one in state.opened],
        **result(run, *FACTS),
    }


def result(run: Run, *facts: str) -> dict[str, Any]:
    """Return some facts of the run, with the verdict in a line and the record they are as of."""
    found = {name: plain_values(getattr(run, name)) for name in facts}
    ledger = {"records": run.state.records, "head": run.state.head}
    return {"sentence": in_short(run), **found, "ledger": ledger}


def best_document(run: Run) -> dict[str, Any]:
    """Return the recommendation with its evidence (None without one), and the baseline."""
    point, best = recommendation(run.state), winner(run.state)
    found, own = run.findings, run.baseline
    compared = None
    if best is not None and found is not None and found.gain is not None:
        compared = _place(run, best.point) | {"gain": plain_values(found.gain)}
        compared["configuration"] = best.name
    measured = own and {"mean": own.mean, "sd": own.sd, "seeds": own.seeds}
    is_confirmed = found is not None and found.configuration is not None  # by a Go
    return {
        "recommendation": point and {**_place(run, point), "is_confirmed": is_confirmed},
        "winner": compared,
        "at_range_ends": _range_ends(run),
        "verdict": found and {"grade": found.grade, "no_go": found.no_go},
        "baseline": {**_place(run, run.plan.space.baseline), "score": measured},
        **result(run),
    }


def _range_ends(run: Run) -> list[dict[str, Any]]:
    return [{"knob": one.name, "end": one.at_end} for one in run.knobs if one.at_end]


def _place(run: Run, point: Point) -> dict[str, Any]:
    return {"point": point, "knobs": run.plan.space.decode(point)}


def flat(fields: Mapping[str, Any]) -> dict[str, str | float]:
    """Return nested fields as `objective/settings/n_layer`, without secrets and empty values.

    Entries of a list go by their names, `space/knobs/lr/low`; those without one are left out.
    """
    found: dict[str, str | float] = {}
    for key, value in fields.items():
        name, inner = plain_name(key), value
        if isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value):
            inner = {one["name"]: one for one in value if "name" in one}
        if isinstance(inner, dict):
            found |= {f"{name}/{part}": leaf for part, leaf in flat(inner).items()}
        elif inner not in (None, "", [], ()):
            said = redacted(f"{key}={value}", os.environ).removeprefix(f"{key}=")
            is_number = isinstance(value, int | float) and said == str(value)
            found[name] = value if is_number else one_line(said, most=500)
    return found


def plain_name(said: str) -> str:
    """Return text as one part of a name that every tracker takes, and no part of a path."""
    return re.sub(r"^\.+|[^A-Za-z0-9_.-]+", "_", said)[:50]
