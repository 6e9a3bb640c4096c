"""What a run's scores measure, in words."""

from budgets.state import RunState

UNITS = {"nanochat": "held-out bits per byte"}
"""What an objective's score is, where it has a unit."""


def scored_by(state: RunState) -> str:
    """The key under which a program says its score, if it says it so."""
    score = state.plan.objective["settings"].get("score")
    line = score.get("line") if isinstance(score, dict) else None
    return line if isinstance(line, str) else ""


def measured_in(state: RunState) -> str:
    """What is measured, with its unit: a program says it by a name of its own."""
    return UNITS.get(state.plan.objective["name"]) or scored_by(state) or "score"
