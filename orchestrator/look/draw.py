"""Drawings with matplotlib: SVG for a page, and the parts that plots share.

Matplotlib is imported when something is drawn, and its pyplot never. The colours are those of Okabe
and Ito, which colour-blind readers tell apart; marks, lines and hatches differ too. In dark mode a
page inverts their lightness.
"""

import base64
import io
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite
from pathlib import Path
from statistics import quantiles
from typing import Any

from budgets.formatting import printable
from budgets.storage import write_aside
from objectives.space import Knob as Scale
from orchestrator.look.page import Figure

INK = "#1b1f24"
GREY, BLUE, SKY, GREEN = "#808080", "#0072b2", "#56b4e9", "#009e73"
ORANGE, RED, PURPLE = "#e69f00", "#d55e00", "#cc79a7"
WIDTH, FONT = 6.4, 9.0  # of a drawing, in inches; of its text, in points
MOST_MARKS = 100  # that are drawn one by one, not as an image

_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE = dict.fromkeys(_INKED, INK) | {
    "font.size": FONT,  # of DejaVu Sans, which comes with matplotlib
    "axes.titlesize": FONT + 1,
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "grid.alpha": 0.4,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a `$` in a name is a `$`
}
_DATE = {"png": "Software", "pdf": "CreationDate", "svg": "Date"}
"""By form, the entry that would make two files of one drawing differ."""
_LOCK = threading.Lock()  # matplotlib's settings are global


@dataclass(frozen=True)
class Drawing:
    """A plot's texts and height (in inches), and a function that paints a matplotlib figure."""

    title: str
    caption: str  # how to read it
    height: float
    paint: Callable[[Any], None]


def figure(name: str, drawing: Drawing) -> Figure:
    """Return the drawing as part of a page."""
    encoded = base64.b64encode(_drawn(drawing, "svg", "none")).decode()
    return Figure(name, line(drawing.title), line(drawing.caption), encoded)


def write(drawing: Drawing, path: Path) -> None:
    """Write it as PNG, PDF or SVG, by the suffix of `path`."""
    write_aside(path, _drawn(drawing, path.suffix.lower().removeprefix("."), paper="white"))


def _drawn(drawing: Drawing, form: str, paper: str) -> bytes:
    """Return a file's content: the same bytes for the same drawing."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks: a viewer has other fonts
        import matplotlib
        from matplotlib.figure import Figure as NewCanvas

        with matplotlib.rc_context(_STYLE | {"svg.hashsalt": drawing.title}):
            canvas, file = NewCanvas((WIDTH, drawing.height), layout="constrained"), io.BytesIO()
            drawing.paint(canvas)
            _legend(canvas)
            about = {_DATE[form]: None}
            canvas.savefig(file, format=form, dpi=200, facecolor=paper, metadata=about)
    return file.getvalue()


def line(text: str) -> str:
    """Return text as one line without characters that steer."""
    return " ".join(printable(text).split())


def _legend(canvas: Any) -> None:
    """Name each kind of mark once, above all charts."""
    marks: dict[str, Any] = {}
    for axes in canvas.axes:
        own, labels = axes.get_legend_handles_labels()
        marks = dict(zip(labels, own, strict=True)) | marks
    looks = {"handlelength": 1.8, "columnspacing": 1.2, "labelspacing": 0.25}
    marks = {  # only of what is drawn
        name: mark
        for name, mark in marks.items()
        if not hasattr(mark, "get_ydata") or known(mark.get_ydata())
    }
    if marks:
        canvas.legend(marks.values(), marks, loc="outside upper left", ncols=3, **looks)


def dots(axes: Any, x: Sequence[float], y: Sequence[float | None], most: int = 250) -> None:
    """Draw evaluations behind all else, evenly thinned to `most`."""
    step = ceil(len(x) / most) or 1
    looks = {"ms": 2.6, "mew": 0, "color": GREY, "zorder": 1.5, "label": "evaluation"}
    axes.plot(x[::step], y[::step], "o", rasterized=len(x) > MOST_MARKS, **looks)


def series(axes: Any, x: Sequence[float], y: Sequence[float | None], label: str = "") -> None:
    """Draw a line over generations, with marks where there are few."""
    from matplotlib.ticker import MaxNLocator

    axes.plot(x, y, color=BLUE, lw=1.6, marker="." * (len(x) <= 30), ms=6, label=label)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def known(values: Iterable[float | None]) -> list[float]:
    """Return the values that can be drawn."""
    return [value for value in values if value is not None and isfinite(value)]


def limits(
    values: Iterable[float | None],
    must: Iterable[float | None],
    near: Iterable[float | None] = (),
) -> tuple[float, float]:
    """Return the ends of an axis that shows all of `must`, and `values` without far outliers.

    Values of `near` are shown unless they are further from all others than those are apart.
    """
    own, always = known(values), known(must)
    low, high = min([*own, *always], default=0.0), max([*own, *always], default=1.0)
    reach = (high - low) or inf
    shown = [*always, *(one for one in known(near) if low - reach < one < high + reach)]
    if len(own) > 7:
        lower, _, upper = quantiles(own, n=4)
        low = max(low, min([4 * lower - 3 * upper, *shown]))
        high = min(high, max([4 * upper - 3 * lower, *shown]))
    low, high = min([low, *shown]), max([high, *shown])
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def knob_ticks(knob: Scale) -> tuple[list[float], list[str]]:
    """Return the ends and the middle of a knob's range, and the values there."""
    places = {f"{knob.decode(unit):.3g}": unit for unit in (0.5, 1.0, 0.0)}
    return list(places.values()), list(places)


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit in which a time is shown, and its length in seconds."""
    return ("s", 1.0) if seconds < 300 else ("min", 60.0) if seconds < 3 * 3600 else ("h", 3600.0)
