"""A plot as a file for a paper, by matplotlib: the same marks in the same roles, on light paper.

Only this module of the package imports matplotlib, where it draws, and changes nothing of its
global state.
"""

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.charts.chart import Plot
from orchestrator.charts.forms import Form
from orchestrator.charts.frame import WIDTH, Frame
from orchestrator.charts.labels import (
    beyond,
    is_tilted,
    rules_above,
    rules_beside,
    tilted,
    x_labels,
    y_labels,
)
from orchestrator.charts.layout import EDGE, LINE, NAME_SHARE, frames, why_empty
from orchestrator.charts.legend import Entry, entries
from orchestrator.charts.lettering import BOLD, cut, widest
from orchestrator.charts.looks import FAINT, GRID, POINTS, handle
from orchestrator.charts.pens import Pen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT = 8  # points
DOTS = 200  # an inch

_RAW = {"parse_math": False}  # a name may hold a dollar


def picture(plot: Plot, form: Form = "png") -> bytes:
    """`plot` as a file of that format: the same bytes for the same plot.

    Raises ImportError without matplotlib.
    """
    import matplotlib.style
    from matplotlib import rc_context

    out = io.BytesIO()
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    own = {"svg.hashsalt": plot.name, "svg.fonttype": "none", "pdf.fonttype": 42}
    # Whatever style its user has: a picture is the same everywhere.
    with matplotlib.style.context("default"), rc_context(own), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: no reason to fail, or to talk.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure_of(plot).savefig(out, format=form, dpi=DOTS, metadata=metadata)
    return out.getvalue()


def figure_of(plot: Plot) -> "Figure":
    """`plot` as matplotlib's own object. Raises ImportError without matplotlib."""
    from matplotlib.figure import Figure

    placed, height = frames(plot, 0.0) if plot.charts else ([], 0.0)
    named = entries(plot)
    columns = max(1, min(plot.columns, len(placed)))
    rows = max(1, -(-len(placed) // columns))
    across = _legend_columns(named)
    height += LINE * (3 + -(-len(named) // across)) + 6 * rows
    inches = POINTS / 72
    figure = Figure(figsize=(WIDTH * inches, height * inches), layout="constrained")
    figure.suptitle(cut(plot.title, WIDTH * 0.9), fontsize=TEXT + 1.5, **_RAW)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, frame in zip(axes, placed, strict=False):
        _draw(axis, frame)
    for axis in axes[len(placed) :]:
        axis.set_axis_off()
    _add_legend(figure, named, across)
    return figure


def _legend_columns(named: Sequence[Entry]) -> int:
    room = widest([entry.label for entry in named]) + 60
    return max(1, min(len(named), int(WIDTH / room)))


def _add_legend(figure: Any, named: Sequence[Entry], columns: int) -> None:
    from matplotlib.legend_handler import HandlerTuple

    if not named:
        return
    legend = figure.legend(
        handles=[tuple(map(handle, entry.marks)) for entry in named],
        labels=["" for _ in named],
        handler_map={tuple: HandlerTuple(ndivide=1)},
        loc="outside lower center",
        ncols=columns,
        fontsize=TEXT,
        frameon=False,
    )
    for text, entry in zip(legend.get_texts(), named, strict=True):
        text.set_parse_math(False)
        text.set_text(cut(entry.label, WIDTH * 0.9))


def _draw(axis: Any, frame: Frame) -> None:
    chart, why = frame.chart, why_empty(frame.chart)
    if chart.title:
        name = cut(chart.title, (frame.cell_right - frame.left) / BOLD)
        axis.set_title(name, fontsize=TEXT, loc="left", fontweight="bold", **_RAW)
    if why:
        axis.set(xticks=[], yticks=[])
        axis.text(0.5, 0.5, why, ha="center", va="center", color=FAINT, fontsize=TEXT,
                  transform=axis.transAxes, wrap=True, **_RAW)  # fmt: skip
        return
    _set_ranges(axis, frame)
    pen = Pen(axis, frame)
    for depth, mark in enumerate(chart.marks):
        pen.draw(mark, depth + 2)
    _set_labels(axis, frame)
    _name_rules(axis, frame)
    if beyond(frame):
        _say_beyond(axis, frame)


def _set_ranges(axis: Any, frame: Frame) -> None:
    x, y = frame.x.range, frame.y.range
    axis.set_xscale("log" if x.is_log else "linear")
    axis.set_yscale("log" if y.is_log else "linear")
    axis.set_xlim(x.low, x.high)
    axis.set_ylim(*((y.high, y.low) if frame.chart.y.categories else (y.low, y.high)))


def _set_labels(axis: Any, frame: Frame) -> None:
    """Ticks, grid and titles, as the page's plot has them."""
    chart = frame.chart
    turned = bool(chart.x.categories) and is_tilted(chart.x, frame.x)
    below = tilted(chart.x, frame.x, frame.cell_left) if turned else x_labels(chart.x, frame.x)
    across = y_labels(chart.y, frame.y, NAME_SHARE * (frame.cell_right - frame.cell_left))
    axis.minorticks_off()
    axis.set_xticks(
        [own.value for own in below], [own.text for own in below], fontsize=TEXT, **_RAW
    )
    axis.set_yticks(
        [own.value for own in across], [own.text for own in across], fontsize=TEXT, **_RAW
    )
    axis.minorticks_off()
    if turned:
        for label in axis.get_xticklabels():
            label.set(rotation=37, ha="right", rotation_mode="anchor")
    if frame.has_x_title:
        axis.set_xlabel(
            cut(chart.x.label, frame.cell_right - frame.cell_left), fontsize=TEXT, **_RAW
        )
    if frame.has_y_title:
        axis.set_ylabel(cut(chart.y.label, (frame.bottom - frame.top) * 1.2), fontsize=TEXT, **_RAW)
    for which in ("y",) if chart.x.categories else ("x", "y"):
        axis.grid(visible=True, axis=which, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(length=2.5, color=FAINT)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _say_beyond(axis: Any, frame: Frame) -> None:
    place = {"ha": "right", "va": "bottom", "color": FAINT, "transform": axis.transAxes}
    axis.text(1, 1.01, beyond(frame), fontsize=TEXT, **place)


def _name_rules(axis: Any, frame: Frame) -> None:
    """Names of rules outside the frame: at the right, and above."""
    wide, high = frame.right - frame.left, frame.bottom - frame.top
    for own in rules_beside(frame, frame.cell_right - frame.right - EDGE):
        where = (1 + 5 / wide, (frame.bottom - own.at) / high)
        axis.text(*where, own.text, va="center", fontsize=TEXT, transform=axis.transAxes, **_RAW)
    for own in rules_above(frame):
        where = ((own.at - frame.left) / wide, 1 + (4 + 14 * own.level) / high)
        axis.text(*where, own.text, ha="center", fontsize=TEXT, transform=axis.transAxes, **_RAW)
