"""Configurations as tests write them: a loaded objective, and keys without their tables."""

from typing import Any

from budgets.plan import Thresholds, Window
from objectives.api import Objective
from orchestrator.config import SECTIONS, Config

TABLES = ("search", "budget", "evaluation", "verdict")
KEYS = {name: f"{table}.{name}" for table in TABLES for name in SECTIONS[table].model_fields}
KEYS |= {"search_seed": "search.seed", "evaluation_seed": "evaluation.seed"}
KEYS |= {"assumed_seconds": "evaluation.assume_eval_seconds"}


def config_for(phase: str, tier: str, objective: Objective, **values: Any) -> Config:
    """A search of that phase; `window` may be a Window, `thresholds` those that are not default."""
    keys: dict[str, Any] = {"search.phase": phase, "search.tier": tier}
    if isinstance(window := values.get("window"), Window):
        until = window.until
        values["window"] = f"{window.hours!r}h" if until is None else until.isoformat()
        values["safety_margin"] = f"{window.margin_seconds!r}s"
    if (thresholds := values.pop("thresholds", None)) is not None:
        keys["thresholds"] = Thresholds(**thresholds)
    keys |= {KEYS[name]: value for name, value in values.items()}
    return Config().having(keys).with_objective(objective)
