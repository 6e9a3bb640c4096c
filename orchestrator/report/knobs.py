"""Every knob of a run: its range, where it began, and what is recommended."""

from budgets.state import RunState
from budgets.verdict.finalists import recommendation
from objectives.space import Knob
from orchestrator.records.planned import space_of
from orchestrator.records.range_ends import range_ends
from orchestrator.report.model import KnobView


def knobs(state: RunState) -> tuple[KnobView, ...]:
    """Every knob, with the baseline and what is recommended."""
    space, point = space_of(state.plan), recommendation(state)
    units = [None] * space.dimension if point is None else point
    ends = {end.knob: end.end for end in range_ends(state)} if state.plan.search else {}
    return tuple(
        _knob(knob, unit, ends.get(knob.name))
        for knob, unit in zip(space.knobs, units, strict=True)
    )


def _knob(knob: Knob, unit: float | None, end: str | None) -> KnobView:
    return KnobView(
        name=knob.name,
        kind=knob.kind,
        step=knob.step,
        low=knob.decode(0.0),
        high=knob.decode(1.0),
        baseline=knob.typed(knob.baseline),
        recommended=None if unit is None else knob.decode(unit),
        baseline_unit=knob.encode(knob.baseline),
        recommended_unit=unit,
        at_end=end,
    )
