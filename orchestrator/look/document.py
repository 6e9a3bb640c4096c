"""A run as one JSON document: the public facts of `Run`, the same from every command.

`tests/approved/keys.txt` lists its keys. What is only there to be drawn (marginals, the replayed
distribution, loss curves) is left out: `orchestrator.load` has it.
"""

from typing import Any

from pydantic_core import to_jsonable_python

from budgets.verdict import recommendation
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.files import measured_in
from orchestrator.look.run import Run

SCHEMA = 1
"""Raised when a key goes, or means something else."""

plain_values = to_jsonable_python

FACTS = (
    *("objective", "decision", "began", "last", "sessions"),
    *("counts", "evaluations_by_status", "balances", "deadline"),
    *("slot_hours", "idle_hours", "wasted_hours", "usage"),
    *("pace", "timing", "eval_seconds", "expected_seconds"),
    *("generations", "attempts", "slots", "failures"),
    *("baseline", "noise_band", "best_so_far", "luck_so_far", "knobs"),
    *("findings", "cautions", "arms", "gains", "check", "proxy", "campaign"),
)
"""Properties of `Run` under their own names."""


def document(run: Run) -> dict[str, Any]:
    """Plain JSON values."""
    plan, state, point = run.plan, run.state, recommendation(run.state)
    fired, overridden = state.fired, state.overridden
    return {
        "schema": SCHEMA,
        "run_id": plan.run_id,
        "directory": None if run.directory is None else str(run.directory),
        "phase": plan.phase,
        "tier": plan.tier,
        "standing": run.standing.kind,
        "whose": run.standing.whose,
        "way_on": run.standing.way_on,
        "sentence": text.sentence(run),
        "answer": plain_values(answer(run)),
        "score": measured_in(state),
        "devices": text.devices(run),
        "generations_finished": state.finished,
        "generations_planned": plan.resolved.generations,
        "recommendation": point and {"point": point, "knobs": run.space.decode(point)},
        "at_range_ends": [end._asdict() for end in run.range_ends],
        "triggers": [f"{one.rule}, generation {one.generation}: {one.evidence}" for one in fired],
        "overrides": [
            f"{one.rule}, generation {one.generation}: {one.reason}" for one in overridden
        ],
        "amendments": [text.amended(one) for one in state.amended],
        "withdrawn": [f"{one.device}: {one.why}" for one in state.withdrawn],
        "ledger": {"records": state.records, "head": state.head},
        **{name: plain_values(getattr(run, name)) for name in FACTS},
    }
