"""Knobs of which a search's best lies at the end of their range: better values may lie beyond."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from budgets.formatting import listed
from budgets.state import RunState
from objectives.space import Knob, SearchSpace
from orchestrator.records.planned import space_of
from orchestrator.records.recommended import best_point

NEAR = 0.01
"""Of a knob's range: no further from an end counts as there. An int knob has to be the end."""


class RangeEnd(NamedTuple):
    """A knob at an end of its range, in the knob's own unit."""

    knob: str
    end: Literal["lower", "upper"]
    value: float
    low: float
    high: float

    @property
    def way(self) -> str:
        """`upwards`: where the range could be wider."""
        return "upwards" if self.end == "upper" else "downwards"

    def in_words(self) -> str:
        return (
            f"{self.knob} = {self.value:.4g} ({self.end} end of {self.low:.4g} to {self.high:.4g})"
        )


def at_ends(space: SearchSpace, point: Sequence[float]) -> tuple[RangeEnd, ...]:
    """The knobs at an end of their range, in the order of the space."""
    found = (_at_end(knob, unit) for knob, unit in zip(space.knobs, point, strict=True))
    return tuple(end for end in found if end is not None)


def range_ends(state: RunState) -> tuple[RangeEnd, ...]:
    """Of the best that a search has (see `best_point`); empty where it has nothing yet."""
    point = best_point(state, compared=True)
    return () if point is None else at_ends(space_of(state.plan), point)


def caution(ends: Sequence[RangeEnd]) -> str:
    """That they are there, and what to do about it: nobody knows which end is a natural limit."""
    return (
        f"The best lies at the end of a range: {listed(end.in_words() for end in ends)}. Better "
        f"values may lie beyond: widen {widened_in_words(ends)} unless nothing can lie there."
    )


def widened_in_words(ends: Sequence[RangeEnd]) -> str:
    """`lr upwards and decay downwards`."""
    return listed(f"{end.knob} {end.way}" for end in ends)


def _at_end(knob: Knob, unit: float) -> RangeEnd | None:
    low, value, high = knob.decode(0.0), knob.decode(unit), knob.decode(1.0)
    is_int = knob.kind == "int"
    if value == low if is_int else unit <= NEAR:
        return RangeEnd(knob.name, "lower", value, low, high)
    if value == high if is_int else unit >= 1.0 - NEAR:
        return RangeEnd(knob.name, "upper", value, low, high)
    return None
