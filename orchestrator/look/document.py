"""A run as one JSON document: the public facts of `Run`, the same from every command.

docs/reference lists the keys. What is only there to be drawn (marginals, the replayed distribution,
loss curves) is left out: `orchestrator.load` has it.
"""

from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from budgets.ledger.storage import document as as_json
from budgets.verdict.finalists import recommendation
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.files import measured_in
from orchestrator.look.run import Run

SCHEMA = 1
"""Raised when a key goes, or means something else."""

FACTS = (
    *("objective", "decision", "began", "last", "sessions"),
    *("counts", "evaluations_by_status", "balances", "deadline"),
    *("slot_hours", "idle_hours", "wasted_hours", "lost_hours"),
    *("overrun_device_hours", "overrun_hours", "usage"),
    *("pace", "timing", "eval_seconds", "expected_seconds"),
    *("generations", "attempts", "slots", "failures"),
    *("baseline", "noise_band", "best_so_far", "luck_so_far", "knobs"),
    *("findings", "cautions", "arms", "gains", "check", "proxy", "campaign"),
)
"""Properties of `Run` under their own names."""


def document(run: Run) -> dict[str, Any]:
    """Plain JSON values."""
    plan, state = run.plan, run.state
    point = recommendation(state)
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
        "recommendation": None
        if point is None
        else {"point": point, "knobs": run.space.decode(point)},
        "at_range_ends": [end._asdict() for end in run.range_ends],
        "triggers": [
            f"{one.rule}, generation {one.generation}: {one.evidence}" for one in state.fired
        ],
        "overrides": [
            f"{one.rule}, generation {one.generation}: {one.reason}" for one in state.overridden
        ],
        "amendments": [text.amended(one) for one in state.amended],
        "withdrawn": [f"{one.device}: {one.why}" for one in state.withdrawn],
        "salvaged": [f"{one.lost_records} records lost: {one.why}" for one in state.salvaged],
        "ledger": {"records": state.records, "head": state.head},
        **{name: plain_values(getattr(run, name)) for name in FACTS},
    }


def document_bytes(run: Run) -> bytes:
    """The document as a file has it."""
    return as_json(document(run))


def plain_values(value: Any) -> Any:
    """What JSON has: of models and dataclasses their fields, of moments ISO 8601."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_values(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value
