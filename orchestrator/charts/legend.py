"""A plot's one legend: a sample and a name of each thing in it, in lines above the charts."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from orchestrator.charts.chart import (
    Band,
    Bars,
    Cells,
    Intervals,
    Line,
    Mark,
    Note,
    Plot,
    Points,
    Rule,
    Spans,
    Stripe,
)
from orchestrator.charts.elements import (
    LARGE,
    USUAL,
    class_of,
    dash_of,
    drawn_size,
    filled,
    path,
    shape_of,
    text_at,
)
from orchestrator.charts.frame import WIDTH
from orchestrator.charts.lettering import TEXT, cut, shown, width_of
from orchestrator.charts.paths import boxes, shapes, short

SAMPLE = 24.0  # width of a sample
SPACE = 6.0  # to its name
APART = 20.0  # to the next
LINE = 18.0

Named = Line | Band | Points | Bars | Spans | Intervals | Rule | Stripe


@dataclass(frozen=True)
class Entry:
    """What one name stands for."""

    label: str
    marks: tuple[Named, ...]


def entries(plot: Plot) -> list[Entry]:
    """What has a name in any chart, each name once; without rules that are named beside it."""
    found: dict[str, dict[str, Named]] = {}
    for chart in plot.charts:
        for mark in () if chart.empty else chart.marks:
            if isinstance(mark, Cells | Note) or not mark.label:
                continue
            if isinstance(mark, Rule) and plot.columns == 1:
                continue
            found.setdefault(mark.label, {}).setdefault(f"{type(mark)}{_looks(mark)}", mark)
    return [Entry(label, tuple(marks.values())) for label, marks in found.items()]


def _looks(mark: Named) -> tuple[object, ...]:
    own = ("role", "is_dashed", "is_thin", "shape", "is_large", "is_filled")
    return tuple(getattr(mark, name, None) for name in own)


def legend(plot: Plot, top: float, ids: str) -> tuple[list[Element], float]:
    """The legend's elements, and where it ends."""
    elements: list[Element] = []
    x, y = 0.0, top
    for entry in entries(plot):
        name = cut(entry.label, WIDTH - SAMPLE - SPACE)
        needed = SAMPLE + SPACE + width_of(name)
        if x > 0 and x + needed > WIDTH:
            x, y = 0.0, y + LINE
        middle = y + LINE / 2
        for mark in sorted(entry.marks, key=_depth):
            elements.extend(sample(mark, x, middle, ids))
        at = short(x + SAMPLE + SPACE), short(middle + TEXT * 0.36)
        elements.append(text_at(*at, name, whole=shown(entry.label)))
        x += needed + APART
    return elements, y + LINE if elements else top


def _depth(mark: Mark) -> int:
    """Areas below lines below points."""
    return (
        0
        if isinstance(mark, Band | Stripe | Bars | Spans)
        else 2
        if isinstance(mark, Points)
        else 1
    )


def sample(mark: Named, x: float, y: float, ids: str) -> Iterator[Element]:
    """One mark as it looks, `SAMPLE` wide, from x on and around y."""
    middle, end = (x + SAMPLE / 2, y), x + SAMPLE
    match mark:
        case Line() | Rule():
            thin = "thin" if isinstance(mark, Line) and mark.is_thin else ""
            d = f"M{x:.1f} {y:.1f}H{end:.1f}"
            yield path(d, "line", thin, dash_of(mark), role=mark.role)
        case Points():
            shape = shape_of(mark)
            large = "large" if mark.is_large else ""
            d = shapes([middle], shape, drawn_size(shape, LARGE if large else USUAL))
            yield path(d, class_of(shape), large, role=mark.role)
        case Intervals():
            yield path(f"M{x + 2:.1f} {y:.1f}H{end - 2:.1f}", "range", role=mark.role)
            fill = "solid" if mark.is_filled else "open"
            yield path(shapes([middle], "diamond", 9), fill, role=mark.role)
        case Band() | Stripe():
            yield path(boxes([(x, y - 6, end, y + 6)]), "band", role=mark.role)
        case Bars() | Spans():
            yield filled(boxes([(x + 4, y - 6, end - 4, y + 6)]), mark.role, ids)
