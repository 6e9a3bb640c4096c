"""A run as data: the JSON documents of `status`, `report` and `best`, and an Optuna study.

`tests/approved/keys.txt` lists the keys. The replayed distribution and the loss curves are left
out: they are only drawn.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from budgets.formatting import one_line
from budgets.verdict import Point, recommendation, winner
from objectives.secrets import redacted
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.attempt_files import measured_in
from orchestrator.look.run import Run

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

SCHEMA = 1
"""Raised when a key is removed, or changes its meaning."""

plain_values = to_jsonable_python

FACTS = (  # properties of `Run` under their own names
    *("decision", "counts", "usage", "pace", "generations", "slots", "failures", "noise_band"),
    *("knobs", "findings", "check", "proxy", "campaign"),
)


def document(run: Run) -> dict[str, Any]:
    """Return the run as plain JSON values; it contains `best.json`."""
    plan, state = run.plan, run.state
    return {
        "schema": SCHEMA,
        "run_id": plan.run_id,
        "directory": None if run.directory is None else str(run.directory),
        "objective": plan.objective.name,
        "phase": plan.phase,
        "tier": plan.tier,
        "standing": run.standing.kind,
        "score": measured_in(state),
        "triggers": text.rules(state, state.fired),
        "overrides": text.rules(state, state.overridden),
        "amendments": [text.amended(one) for one in state.amended],
        "balances": [one.in_units for one in run.balances],
        **{name: plain_values(getattr(run, name)) for name in FACTS},
        **best_document(run),
    }


def best_document(run: Run) -> dict[str, Any]:
    """Return the recommendation with its evidence (None without one), and the baseline's score."""
    point, best, compared = recommendation(run.state), winner(run.state), None
    if best is not None and run.gain is not None:
        compared = _place(run, best.point) | {"gain": plain_values(run.gain)}
        compared["configuration"] = best.name
    return {
        "answer": plain_values(answer(run)),
        "recommendation": point and _place(run, point),
        "winner": compared,
        "at_range_ends": [{"knob": one.name, "end": one.at_end} for one in run.knobs if one.at_end],
        "verdict": run.findings and {"grade": run.findings.grade, "no_go": run.findings.no_go},
        "baseline": plain_values(run.baseline),
        "ledger": {"records": run.state.records, "head": run.state.head},
    }


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


# As an Optuna study

BEST_TRIAL = "The best trial is the best of many noisy scores, not what is recommended."


def as_study(run: Run, out: Path) -> int:
    """Write a search as an Optuna study into a new SQLite file; return the number of trials.

    A trial is a candidate of a finished generation, its value the mean over its seeds. Raises
    ValueError on a run that searches nothing.
    """
    if not run.is_search:
        raise ValueError(f"{run.plan.run_id} is a {run.plan.phase} run: expected a search")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    out.touch(exist_ok=False)  # an OSError says why it cannot be written
    storage, name = f"sqlite:///{out.absolute()}", run.plan.run_id
    study = optuna.create_study(storage=storage, study_name=name, direction=run.plan.direction)
    found = answer(run)
    study.set_user_attr("verdict", f"{found.title}: {found.sentence}")
    study.set_user_attr("ledger_head", run.state.head)
    study.set_user_attr("best_trial", BEST_TRIAL)
    study.add_trials(trials := list(_trials(run)))
    return len(trials)


def _trials(run: Run) -> Iterator["FrozenTrial"]:
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    distributions: dict[str, BaseDistribution] = {
        knob.name: IntDistribution(int(knob.low), int(knob.high), step=knob.step)
        if knob.kind == "int"
        else FloatDistribution(knob.decode(0.0), knob.decode(1.0), log=knob.kind == "log10")
        for knob in run.plan.space.knobs
    }
    for generation in run.state.completed:
        scores = zip(generation.points, generation.scores(), strict=True)
        for candidate, (point, score) in enumerate(scores):
            yield create_trial(
                state=TrialState.FAIL if score is None else TrialState.COMPLETE,
                value=score,
                params=run.plan.space.decode(point),
                distributions=distributions,
                user_attrs={"generation": generation.number, "candidate": candidate},
            )
