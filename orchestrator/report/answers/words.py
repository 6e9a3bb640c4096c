"""Words that several answers have in common."""

from budgets.state import RunState
from budgets.statistics.comparison import better
from orchestrator.report.knobs import knobs
from orchestrator.report.model import KnobView

LARGEST = 3
"""Moves of knobs that are named."""


def luck_in_words(seemed: float | None, by_luck: float | None) -> str:
    """What the best score of a search is worth, beside what as many baselines would show."""
    if seemed is None:
        return ""
    said = f"The best single score of the search seemed {better(seemed)}"
    if by_luck is None:
        return f"{said}; the noise was not measured, so that says nothing."
    return (
        f"{said}; by luck alone the best of as many baselines would seem about {better(by_luck)}. "
        "Neither is evidence: only fresh seeds count."
    )


def largest_moves(state: RunState) -> str:
    """`matrix_lr 0.02 to 0.035, tau_c 0.85 to 0.9, and 8 more`, in shares of their ranges."""
    moved = sorted(filter(_reach, knobs(state)), key=_reach, reverse=True)
    said = [
        f"{knob.name} {knob.baseline:.3g} to {knob.recommended:.3g}" for knob in moved[:LARGEST]
    ]
    more = len(moved) - LARGEST
    return ", ".join(said) + (f", and {more} more" if more > 0 else "")


def _reach(knob: KnobView) -> float:
    if knob.recommended is None or knob.recommended_unit is None:
        return 0.0
    if f"{knob.recommended:.3g}" == f"{knob.baseline:.3g}":
        return 0.0
    return abs(knob.recommended_unit - knob.baseline_unit)
