"""Where the charts of a plot go: margins, heights, and small multiples in rows."""

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.charts.chart import Axis, Chart, Plot, Rule
from orchestrator.charts.extents import along
from orchestrator.charts.frame import WIDTH, Frame, Scale
from orchestrator.charts.labels import (
    LEVEL,
    TICK,
    TILT_COSINE,
    TILT_SINE,
    beyond,
    is_tilted,
    rules_above,
    tilted,
    x_labels,
    y_labels,
)
from orchestrator.charts.lettering import TEXT, shown, widest, width_of
from orchestrator.charts.scale import is_drawable, range_of

GAP = 18.0  # between small multiples
LINE = 17.0  # height of a line of text
EDGE = 14.0  # to the right of a frame
FIRST_NAME = 80.0  # room for the first of names that are tilted, to the left of its place
LEAST_HEIGHT = 48.0  # of a frame
LEAST_ROW = 16.0  # of a frame's named row
EMPTY_HEIGHT = 56.0

NAME_SHARE, RULE_SHARE = 0.56, 0.26
"""How much of a chart's width the names of its rows may take, and the names of its rules."""


def frames(plot: Plot, top: float) -> tuple[list[Frame], float]:
    """The frame of each chart, the first row below `top`, and where the last row ends."""
    columns = max(1, min(plot.columns, len(plot.charts)))
    cell = (WIDTH - GAP * (columns - 1)) / columns
    sides = [_sides(chart, cell, plot.aspect, columns) for chart in plot.charts]
    left, right = max(side[0] for side in sides), max(side[1] for side in sides)
    placed: list[Frame] = []
    for start in range(0, len(plot.charts), columns):
        row = [
            _frame(plot, place, (place - start) * (cell + GAP), (left, cell - right, cell), columns)
            for place in range(start, min(start + columns, len(plot.charts)))
        ]
        own_head = max(map(head, row))
        top += own_head
        bottom = top + max(frame.bottom for frame in row)
        placed.extend(replace(_moved(frame, top, bottom), head=own_head) for frame in row)
        top = bottom + max(map(foot, row)) + GAP * 0.6
    return placed, top - GAP * 0.6


def why_empty(chart: Chart) -> str:
    """Why a chart has nothing to draw; empty: it has something."""
    if chart.empty:
        return shown(chart.empty)
    if any(axis.categories for axis in (chart.x, chart.y)) and chart.marks:
        return ""
    axes = zip((chart.x, chart.y), along(chart), strict=True)
    has_numbers = [any(is_drawable(v, is_log=a.scale == "log") for v in vs) for a, vs in axes]
    return "" if any(has_numbers) else "nothing to show"


def _sides(chart: Chart, cell: float, aspect: float, columns: int) -> tuple[float, float]:
    """Widths to the left and to the right of a frame."""
    if why_empty(chart):
        return 0.0, 0.0
    x, y = (range_of(axis, own) for axis, own in zip((chart.x, chart.y), along(chart), strict=True))
    height = (chart.aspect or aspect) * cell * 0.85
    names = y_labels(chart.y, Scale(y, height, 0), NAME_SHARE * cell)
    left = widest([label.text for label in names]) + TICK + 2
    if chart.x.categories and is_tilted(chart.x, Scale(x, left, cell - EDGE)):
        left = max(left, min(_reach_of_first(chart.x), FIRST_NAME))
    below = x_labels(chart.x, Scale(x, left, cell - EDGE))
    half = widest([label.text for label in below]) / 2  # of one at the very edge
    right = _rule_room(chart, cell) if columns == 1 else 0.0
    return max(left, half), max(EDGE, half, right)


def _reach_of_first(axis: Axis) -> float:
    """How far the first of tilted names reaches to the left of its place."""
    return (width_of(shown(axis.categories[0])) + TEXT) * TILT_COSINE


def _rule_room(chart: Chart, cell: float) -> float:
    names = _named_rules(chart)
    return min(widest(names) + 2, RULE_SHARE * cell) + EDGE if names else 0.0


def _named_rules(chart: Chart) -> list[str]:
    rules = (mark for mark in chart.marks if isinstance(mark, Rule))
    return [shown(rule.label) for rule in rules if rule.axis == "y" and rule.label]


def _frame(
    plot: Plot, place: int, offset: float, across: tuple[float, float, float], columns: int
) -> Frame:
    """A frame whose top is at 0; `across`: its left, its right, and the end of its cell."""
    chart = plot.charts[place]
    numbers = along(chart)
    left, right, end = (offset + own for own in across)
    is_last = place + columns >= len(plot.charts)
    bottom = _height(chart, (chart.aspect or plot.aspect) * (right - left), columns)
    y = range_of(chart.y, numbers[1])
    return Frame(
        chart,
        x=Scale(range_of(chart.x, numbers[0]), left, right),
        y=Scale(y, 0.0, bottom) if chart.y.categories else Scale(y, bottom, 0.0),
        cell_left=offset,
        cell_right=end,
        has_x_title=is_last or not _is_shared([own.x for own in plot.charts]),
        has_y_title=place % columns == 0 or not _is_shared([own.y for own in plot.charts]),
        names_rules=columns == 1,
    )


def _is_shared(axes: Sequence[Axis]) -> bool:
    return len({axis.label for axis in axes}) == 1


def _height(chart: Chart, wanted: float, columns: int) -> float:
    """As wanted, or as much as its names need."""
    if why_empty(chart):
        return EMPTY_HEIGHT
    rules = LEVEL * len(_named_rules(chart)) if columns == 1 else 0.0
    return max(wanted, rules, LEAST_HEIGHT, LEAST_ROW * len(chart.y.categories))


def head(frame: Frame) -> float:
    """Height of what is written above a frame."""
    lines = int(bool(frame.chart.title))
    if why_empty(frame.chart):
        return LINE * lines
    lines += int(bool(frame.has_y_title and frame.chart.y.label) or bool(beyond(frame)))
    levels = 1 + max((rule.level for rule in rules_above(frame)), default=-1)
    return LINE * lines + LEVEL * levels + 5


def foot(frame: Frame) -> float:
    """Height of what is written below a frame."""
    if why_empty(frame.chart):
        return 0.0
    title = LINE if frame.has_x_title and frame.chart.x.label else 0.0
    return below(frame) + title + 2


def below(frame: Frame) -> float:
    """Height of the labels below a frame."""
    axis = frame.chart.x
    if not (axis.categories and is_tilted(axis, frame.x)):
        return TICK + TEXT
    names = tilted(axis, frame.x, frame.cell_left)
    return TICK + TEXT + TILT_SINE * widest([name.text for name in names])


def _moved(frame: Frame, top: float, bottom: float) -> Frame:
    """The frame with its top and bottom there."""
    ends = (top, bottom) if frame.y.start < frame.y.end else (bottom, top)
    return replace(frame, y=Scale(frame.y.range, *ends))
