"""What matplotlib takes to draw a mark as the page does, on light paper."""

from typing import Any, assert_never

from orchestrator.charts.chart import (
    Band,
    Bars,
    Intervals,
    Line,
    Points,
    Role,
    Rule,
    Shape,
    Spans,
    Stripe,
)
from orchestrator.charts.elements import LARGE, USUAL, dash_of, shape_of
from orchestrator.charts.inks import INKS, LIGHT_PAPER
from orchestrator.charts.legend import Named

POINTS = 2 / 3
"""Points of a printer in a plot's unit: text of 12 units is 8 points high."""

PALE = 0.45
"""How opaque a mark of many is: the page's style sheet says the same."""

FAINT, GRID = "#5c5c5c", "#e4e4e4"

MARKERS: dict[Shape, str] = {
    "dot": "o", "cross": "x", "diamond": "D", "square": "s", "triangle": "^",
}  # fmt: skip

SIZES: dict[Shape, float] = {
    "dot": 1.0, "cross": 1.25, "diamond": 0.95, "square": 0.9, "triangle": 1.2,
}  # fmt: skip
"""How much larger than a dot each must be, to weigh as much."""

HATCHES = {"hatched": "////", "crossed": "xxxx", "striped": "----"}


def line_look(mark: Line | Rule) -> dict[str, Any]:
    """What a line of matplotlib's takes to look as the page's does."""
    ink = INKS[mark.role]
    is_thin = isinstance(mark, Line) and mark.is_thin
    width = 0.8 if is_thin else 1.4 if isinstance(mark, Line) else 1.1
    own = {"dash-own": ink.dash, "dash": (6, 4), "": ()}[dash_of(mark)]
    style: Any = (0, tuple(length * POINTS for length in own)) if own else "-"
    alpha = PALE if isinstance(mark, Line) and mark.is_faint else 1.0
    return {"color": ink.light, "linewidth": width, "linestyle": style, "alpha": alpha}


def points_look(mark: Points, size: float) -> dict[str, Any]:
    """What points of matplotlib's take to look as the page's do."""
    shape = shape_of(mark)
    look = {
        "linestyle": "",
        "marker": MARKERS[shape],
        "markersize": size * POINTS * SIZES[shape],
    }
    edge = 1.2 if shape == "cross" else 0.0
    look |= {"alpha": PALE if mark.is_faint else 1.0}
    return look | {"color": INKS[mark.role].light, "markeredgewidth": edge}


def mean_look(mark: Intervals) -> dict[str, Any]:
    colour = INKS[mark.role].light
    fill = colour if mark.is_filled else LIGHT_PAPER
    look = {"linestyle": "", "marker": "D", "markersize": 4.6, "markerfacecolor": fill}
    return look | {"markeredgecolor": colour, "markeredgewidth": 1.1}


def area_look(role: Role) -> dict[str, Any]:
    """What an area of matplotlib's takes: textured as the page's is."""
    ink = INKS[role]
    if ink.texture == "hollow":
        return {"facecolor": f"{ink.light}26", "edgecolor": ink.light, "linewidth": 0.7}
    look = {"facecolor": ink.light, "edgecolor": LIGHT_PAPER, "linewidth": 0.3}
    return look | ({"hatch": HATCHES[ink.texture]} if ink.texture in HATCHES else {})


def band_look(role: Role) -> dict[str, Any]:
    colour = INKS[role].light
    return {"facecolor": f"{colour}2b", "edgecolor": f"{colour}73", "linewidth": 0.5}


def handle(mark: Named) -> Any:
    """A legend's sample of one mark."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    match mark:
        case Line() | Rule():
            return Line2D([], [], **(line_look(mark) | {"alpha": 1.0}))
        case Points():
            look = points_look(mark, LARGE if mark.is_large else USUAL)
            return Line2D([], [], **(look | {"alpha": 1.0}))
        case Intervals():
            return Line2D(
                [], [], **(mean_look(mark) | {"linestyle": "-", "color": INKS[mark.role].light})
            )
        case Band() | Stripe():
            return Patch(**band_look(mark.role))
        case Bars() | Spans():
            return Patch(**area_look(mark.role))
    assert_never(mark)
