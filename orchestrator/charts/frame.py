"""A chart's plotting area: where its numbers are, in the plot's own units.

A plot is 800 wide, as high as it needs to be, and grows and shrinks as a whole with its page.
"""

from dataclasses import dataclass

from orchestrator.charts.chart import Chart
from orchestrator.charts.scale import Range

WIDTH = 800.0


@dataclass(frozen=True)
class Scale:
    """An axis from `start` to `end`, which are where its range is low and high."""

    range: Range
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where `value` is. Far outside the frame counts as just far enough outside."""
        share = max(-4.0, min(5.0, self.range.share(value)))
        return self.start + share * (self.end - self.start)

    @property
    def low(self) -> float:
        return min(self.start, self.end)

    @property
    def high(self) -> float:
        return max(self.start, self.end)


@dataclass(frozen=True)
class Frame:
    """One chart with its axes in place, and the cell of the plot that it fills."""

    chart: Chart
    x: Scale
    y: Scale
    cell_left: float
    cell_right: float
    has_x_title: bool = True
    has_y_title: bool = True
    head: float = 0.0  # height of what is above its row of frames
    names_rules: bool = True  # beside them; else the legend does

    @property
    def left(self) -> float:
        return self.x.low

    @property
    def right(self) -> float:
        return self.x.high

    @property
    def top(self) -> float:
        return self.y.low

    @property
    def bottom(self) -> float:
        return self.y.high

    def holds(self, x: float, y: float) -> bool:
        return self.x.range.holds(x) and self.y.range.holds(y)
