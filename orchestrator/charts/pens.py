"""Marks drawn on matplotlib's axes, each in its role's ink on light paper."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Any, assert_never

from orchestrator.charts.areas import NARROW
from orchestrator.charts.chart import (
    Band,
    Bars,
    Cells,
    Intervals,
    Line,
    Mark,
    Note,
    Numbers,
    Points,
    Rule,
    Spans,
    Stripe,
)
from orchestrator.charts.elements import size_of
from orchestrator.charts.extents import Ends, boxes_of
from orchestrator.charts.frame import Frame
from orchestrator.charts.heat import heat_step, number
from orchestrator.charts.inks import INKS, LIGHT_PAPER, heat, text_on
from orchestrator.charts.lettering import shown
from orchestrator.charts.looks import (
    FAINT,
    GRID,
    area_look,
    band_look,
    line_look,
    mean_look,
    points_look,
)
from orchestrator.charts.paths import place_of
from orchestrator.charts.scale import Range, is_drawable

Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass(frozen=True)
class Pen:
    """Draws marks on one pair of matplotlib's axes."""

    axes: Any
    frame: Frame

    def draw(self, mark: Mark, depth: int) -> None:
        """Draw one mark; those of a greater depth cover it."""
        match mark:
            case Line():
                self._line(mark, depth)
            case Band():
                x, low, high = (_numbers(own) for own in (mark.x, mark.low, mark.high))
                self.axes.fill_between(x, low, high, zorder=depth, **band_look(mark.role))
            case Points():
                self._points(mark, depth)
            case Bars() | Spans():
                self._boxes(mark, depth)
            case Intervals():
                self._intervals(mark, depth)
            case Rule():
                self._rule(mark, depth)
            case Stripe():
                self._stripe(mark, depth)
            case Cells():
                self._cells(mark, depth)
            case Note():
                self._note(mark, depth)
            case _:
                assert_never(mark)

    def _line(self, mark: Line, depth: int) -> None:
        style = "steps-post" if mark.is_step else "default"
        x, y = _numbers(mark.x), _numbers(mark.y)
        look = line_look(mark)
        if not mark.is_thin:
            casing = {"color": LIGHT_PAPER, "linewidth": 3.0, "alpha": 0.7}
            self.axes.plot(x, y, drawstyle=style, zorder=depth - 0.5, **casing)
        self.axes.plot(x, y, drawstyle=style, zorder=depth, **look)
        alone = [place for place in range(len(y)) if _is_alone(y, place)]
        at = [x[place] for place in alone], [y[place] for place in alone]
        self.axes.plot(*at, "o", color=look["color"], markersize=2.6, zorder=depth)

    def _points(self, mark: Points, depth: int) -> None:
        held = [
            (x, y)
            for x, y in zip(mark.x, mark.y, strict=True)
            if place_of(self.frame, x, y) and self.frame.holds(x or 0.0, y or 0.0)
        ]
        x, y = [own[0] for own in held], [own[1] for own in held]
        look = points_look(mark, size_of(mark, self.frame, len(held)))
        self.axes.plot(x, y, zorder=depth, clip_on=False, **look)

    def _boxes(self, mark: Bars | Spans, depth: int) -> None:
        from matplotlib.collections import PolyCollection

        inside = [box for x, y, _ in boxes_of(mark) if (box := self._inside(x, y))]
        corners = [
            [(left, low), (right, low), (right, high), (left, high)]
            for left, low, right, high in inside
        ]
        if corners:
            look = area_look(mark.role) | ({"linewidth": 0} if self._are_narrow(inside) else {})
            boxes_drawn = PolyCollection(corners, zorder=depth, **look)
            self.axes.add_collection(boxes_drawn, autolim=False)

    def _are_narrow(self, boxes: list[Box]) -> bool:
        """Whether an edge would be most of them."""
        place = self.frame.x.at
        return median(place(right) - place(left) for left, _, right, _ in boxes) < NARROW

    def _inside(self, x: Ends, y: Ends) -> Box | None:
        """The box cut at the frame: what is far outside would make files large."""
        if any(map(math.isnan, (*x, *y))):
            return None
        left, right = _cut(*x, self.frame.x.range)
        low, high = _cut(*y, self.frame.y.range)
        return (left, low, right, high) if left <= right and low <= high else None

    def _intervals(self, mark: Intervals, depth: int) -> None:
        colour = INKS[mark.role].light
        rows = list(zip(mark.at, mark.low, mark.mean, mark.high, strict=True))
        whole = [(at, low, high) for at, low, _, high in rows if None not in (at, low, high)]
        ats, lows, highs = ([row[n] for row in whole] for n in range(3))
        draw = self.axes.hlines if mark.is_horizontal else self.axes.vlines
        draw(ats, lows, highs, color=colour, linewidth=1.1, zorder=depth)
        cap = {"linestyle": "", "color": colour, "markersize": 5, "zorder": depth}
        for ends in (lows, highs):
            self._plot(ends, ats, mark, marker="|" if mark.is_horizontal else "_", **cap)
        means = [(at, mean) for at, _, mean, _ in rows if None not in (at, mean)]
        self._plot([mean for _, mean in means], [at for at, _ in means], mark,
                   zorder=depth + 0.5, **mean_look(mark))  # fmt: skip

    def _plot(self, along: Any, across: Any, mark: Intervals, **look: Any) -> None:
        pair = (along, across) if mark.is_horizontal else (across, along)
        self.axes.plot(*pair, **look)

    def _rule(self, mark: Rule, depth: int) -> None:
        own = self.frame.x.range if mark.axis == "x" else self.frame.y.range
        if own.holds(mark.value):
            draw = self.axes.axvline if mark.axis == "x" else self.axes.axhline
            draw(mark.value, zorder=depth, **line_look(mark))

    def _stripe(self, mark: Stripe, depth: int) -> None:
        is_x = mark.axis == "x"
        low, high = _cut(mark.low, mark.high, self.frame.x.range if is_x else self.frame.y.range)
        if low <= high:
            draw = self.axes.axvspan if is_x else self.axes.axhspan
            draw(low, high, zorder=depth, **band_look(mark.role))

    def _cells(self, mark: Cells, depth: int) -> None:
        from matplotlib.patches import Rectangle

        names = max(len(self.frame.chart.x.categories), 1)
        size = min(8.0, 150 / names)
        for row, values in enumerate(mark.values):
            for column, value in enumerate(values):
                is_number = is_drawable(value)
                colour = heat(heat_step(value), "light") if is_drawable(value) else GRID
                corner = (column - 0.5, row - 0.5)
                square = Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", zorder=depth)
                self.axes.add_patch(square)
                self.axes.text(
                    column, row, number(value), ha="center", va="center", fontsize=size,
                    color=text_on(colour) if is_number else FAINT, zorder=depth + 1,
                )  # fmt: skip

    def _note(self, mark: Note, depth: int) -> None:
        if not (place_of(self.frame, mark.x, mark.y) and self.frame.holds(mark.x, mark.y)):
            return
        is_left = self.frame.x.range.share(mark.x) < 0.7
        from matplotlib.patheffects import withStroke

        self.axes.annotate(
            shown(mark.text), (mark.x, mark.y), ((4 if is_left else -4), 3), fontsize=8,
            textcoords="offset points", ha="left" if is_left else "right", zorder=depth + 50,
            parse_math=False, path_effects=[withStroke(linewidth=2, foreground=LIGHT_PAPER)],
        )  # fmt: skip


def _numbers(values: Numbers) -> list[float]:
    """NaN for what is no number: there matplotlib breaks a line."""
    return [value if is_drawable(value) else math.nan for value in values]


def _is_alone(values: list[float], place: int) -> bool:
    around = [values[n] for n in (place - 1, place + 1) if 0 <= n < len(values)]
    return not math.isnan(values[place]) and all(map(math.isnan, around))


def _cut(one: float, other: float, own: Range) -> Ends:
    low, high = sorted((one, other))
    return max(low, own.low), min(high, own.high)
