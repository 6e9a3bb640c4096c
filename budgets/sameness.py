"""Metrics that must have one value in all healthy evaluations of a run: named `same.` something.

They say how a score was computed: with which kernels, compiled or not. Where that differs, two
scores differ for another reason than their knobs. The first healthy evaluation sets the values.
"""

from collections.abc import Mapping

from budgets.events import Reserved, Settled
from budgets.state import RunState

PREFIX = "same."


def marks(metrics: Mapping[str, float]) -> dict[str, float]:
    """Those of the metrics that must not differ."""
    return {name: value for name, value in metrics.items() if name.startswith(PREFIX)}


def compared_with(state: RunState, place: Reserved | Settled) -> int | None:
    """Whose marks an evaluation is held against: a campaign's conditions each have their own."""
    return None if state.plan.campaign is None else place.candidate


def difference(state: RunState, end: Settled) -> str:
    """What `end` shows to have been computed otherwise than the run so far; empty where nothing.

    A mark that the first healthy evaluation lacked is not looked at.
    """
    own = marks(end.metrics)
    for name, value in state.marks.get(compared_with(state, end), {}).items():
        if own.get(name) != value:
            here = "missing" if name not in own else _number(own[name])
            return (
                f"{name} is {here} here, {_number(value)} in the run so far: scores of the two "
                "cannot be compared"
            )
    return ""


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")
