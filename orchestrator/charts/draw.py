"""Marks as SVG elements. Their looks are classes: `style` has what each means."""

import math
from collections.abc import Iterator, Sequence
from typing import assert_never
from xml.etree.ElementTree import Element, SubElement

from orchestrator.charts.chart import (
    Band,
    Bars,
    Cells,
    Intervals,
    Line,
    Mark,
    Note,
    Points,
    Role,
    Rule,
    Shape,
    Spans,
    Stripe,
)
from orchestrator.charts.extents import bars, tips
from orchestrator.charts.frame import Frame, Scale
from orchestrator.charts.heat import heat_cells
from orchestrator.charts.inks import INKS
from orchestrator.charts.lettering import TEXT, shown, width_of
from orchestrator.charts.paths import (
    Box,
    area,
    boxes,
    line,
    place_of,
    runs,
    shapes,
    short,
)

MOST_TIPS = 300
"""Marks of one kind that each say something when they are pointed at."""

CROWD = 500
"""Points of one kind from which on they are drawn smaller."""

CAP = 4.0  # half the height of an interval's ends


def drawn(mark: Mark, frame: Frame, ids: str) -> Iterator[Element]:
    """The elements of one mark. `ids` is what its plot's ids begin with."""
    match mark:
        case Line():
            yield from _line(mark, frame)
        case Band():
            yield from _band(mark, frame)
        case Points():
            yield from _points(mark, frame)
        case Bars():
            yield from _boxes(list(_of_bars(mark, frame)), mark.role, ids)
        case Spans():
            yield from _boxes(list(_of_spans(mark, frame)), mark.role, ids)
        case Intervals():
            yield from _intervals(mark, frame)
        case Rule():
            yield from _rule(mark, frame)
        case Stripe():
            yield from _stripe(mark, frame)
        case Cells():
            yield from heat_cells(mark, frame)
        case Note():
            yield from _note(mark, frame)
        case _:
            assert_never(mark)


def path(d: str, *classes: str, role: Role | None = None) -> Element:
    """A path of these looks."""
    names = [name for name in classes if name]
    return Element(
        "path", {"class": " ".join([*names, *([f"role-{role}"] if role else [])]), "d": d}
    )


def dash_of(role: Role, *, is_dashed: bool, is_thin: bool = False) -> str:
    """The class that dashes a line: its role's own dash, or any where it has none."""
    if INKS[role].dash and not (is_thin and not is_dashed):
        return "dash-own"
    return "dash" if is_dashed else ""


def shape_of(mark: Points) -> Shape:
    """The shape that was asked for, or else its role's."""
    return mark.shape if mark.shape != "dot" else INKS[mark.role].shape


def _line(mark: Line, frame: Frame) -> Iterator[Element]:
    found = runs(frame, mark.x, mark.y)
    drawn = "".join(line(run, is_step=mark.is_step) for run in found if len(run) > 1)
    if drawn:
        dash = dash_of(mark.role, is_dashed=mark.is_dashed, is_thin=mark.is_thin)
        yield path(drawn, "line", "thin" if mark.is_thin else "", dash, role=mark.role)
    alone = [run[0] for run in found if len(run) == 1]
    if alone:
        yield path(shapes(alone, "dot", 4), "dot", "small", role=mark.role)


def _band(mark: Band, frame: Frame) -> Iterator[Element]:
    pairs = list(zip(mark.low, mark.high, strict=True))
    lows = [low if high is not None else None for low, high in pairs]
    highs = [high if low is not None else None for low, high in pairs]
    found = zip(runs(frame, mark.x, highs), runs(frame, mark.x, lows), strict=False)
    d = "".join(area(upper, lower) for upper, lower in found if len(upper) == len(lower))
    if d:
        yield path(d, "band", role=mark.role)


def _points(mark: Points, frame: Frame) -> Iterator[Element]:
    found = [
        (place, tip)
        for x, y, tip in zip(mark.x, mark.y, tips(mark), strict=True)
        if (place := place_of(frame, x, y)) and frame.holds(x or 0.0, y or 0.0)
    ]
    if not found:
        return
    shape = shape_of(mark)
    size = 9.0 if mark.is_large else 3.2 if len(found) > CROWD else 5.0
    names = [_class_of(shape), "" if size == 5.0 else "large" if mark.is_large else "small"]
    if not mark.tips or len(found) > MOST_TIPS:
        yield path(shapes([place for place, _ in found], shape, size), *names, role=mark.role)
        return
    for place, tip in found:
        yield _with_tip(path(shapes([place], shape, size), *names, role=mark.role), tip)


def _class_of(shape: Shape) -> str:
    return {"dot": "dot", "square": "square", "cross": "cross"}.get(shape, "solid")


def _with_tip(element: Element, tip: str) -> Element:
    if tip:
        SubElement(element, "title").text = shown(tip)
    return element


def _of_bars(mark: Bars, frame: Frame) -> Iterator[tuple[Box, str]]:
    for x, base, top, tip in bars(mark):
        ends = (x - mark.width / 2, x + mark.width / 2)
        sides = ((base, top), ends) if mark.is_horizontal else (ends, (base, top))
        if box := _box(frame, *sides):
            yield box, tip


def _of_spans(mark: Spans, frame: Frame) -> Iterator[tuple[Box, str]]:
    half = mark.height / 2
    for row, start, end, tip in zip(mark.row, mark.start, mark.end, tips(mark), strict=True):
        if box := _box(frame, (start, end), (row - half, row + half)):
            yield box, tip


def _box(frame: Frame, along: tuple[float, float], across: tuple[float, float]) -> Box | None:
    """The rectangle in its place, cut at the frame; None outside of it, or without numbers."""
    x, y = _inside(frame.x, *along), _inside(frame.y, *across)
    return (x[0], y[0], x[1], y[1]) if x and y else None


def _inside(scale: Scale, one: float, other: float) -> tuple[float, float] | None:
    """What of the stretch between two values is inside the frame, as places in order."""
    if math.isnan(one) or math.isnan(other):
        return None
    ends = sorted((scale.at(one), scale.at(other)))
    low, high = max(ends[0], scale.low), min(ends[1], scale.high)
    return (low, high) if low <= high else None


def _boxes(found: Sequence[tuple[Box, str]], role: Role, ids: str) -> Iterator[Element]:
    if not found:
        return
    if not any(tip for _, tip in found) or len(found) > MOST_TIPS:
        yield filled(boxes(box for box, _ in found), role, ids)
        return
    for box, tip in found:
        yield _with_tip(filled(boxes([box]), role, ids), tip)


def filled(d: str, role: Role, ids: str) -> Element:
    """An area in its role's texture."""
    texture = INKS[role].texture
    if texture in ("solid", "hollow"):
        return path(d, "area", "hollow" if texture == "hollow" else "", role=role)
    element = path(d, "area", "textured", role=role)
    element.set("fill", f"url(#{ids}-{role})")
    return element


def _intervals(mark: Intervals, frame: Frame) -> Iterator[Element]:
    ranges, middles = [], []
    for at, low, mean, high in zip(mark.at, mark.low, mark.mean, mark.high, strict=True):
        if low is not None and high is not None:
            ends = [_turned(frame, value, at, mark) for value in (low, high)]
            if ends[0] and ends[1]:
                ranges.append(_capped(ends[0], ends[1], is_horizontal=mark.is_horizontal))
        middle = _turned(frame, mean, at, mark)
        if middle:
            middles.append(middle)
    if ranges:
        yield path("".join(ranges), "range", role=mark.role)
    if middles:
        fill = "solid" if mark.is_filled else "open"
        yield path(shapes(middles, "diamond", 9), fill, role=mark.role)


def _turned(
    frame: Frame, value: float | None, at: float | None, mark: Intervals
) -> tuple[float, float] | None:
    return place_of(frame, value, at) if mark.is_horizontal else place_of(frame, at, value)


def _capped(low: tuple[float, float], high: tuple[float, float], *, is_horizontal: bool) -> str:
    (x0, y0), (x1, y1) = low, high
    if is_horizontal:
        cap = f"v{short(2 * CAP)}"
        return (
            f"M{short(x0)} {short(y0)}H{short(x1)}"
            f"M{short(x0)} {short(y0 - CAP)}{cap}M{short(x1)} {short(y1 - CAP)}{cap}"
        )
    cap = f"h{short(2 * CAP)}"
    return (
        f"M{short(x0)} {short(y0)}V{short(y1)}"
        f"M{short(x0 - CAP)} {short(y0)}{cap}M{short(x1 - CAP)} {short(y1)}{cap}"
    )


def _rule(mark: Rule, frame: Frame) -> Iterator[Element]:
    scale = frame.x if mark.axis == "x" else frame.y
    if not scale.range.holds(mark.value):
        return
    at = short(scale.at(mark.value))
    ends = (
        f"M{at} {short(frame.top)}V{short(frame.bottom)}"
        if mark.axis == "x"
        else f"M{short(frame.left)} {at}H{short(frame.right)}"
    )
    dash = dash_of(mark.role, is_dashed=mark.is_dashed) if mark.is_dashed else ""
    yield path(ends, "line", "rule", dash, role=mark.role)


def _stripe(mark: Stripe, frame: Frame) -> Iterator[Element]:
    whole = (frame.x.range.low, frame.x.range.high), (frame.y.range.low, frame.y.range.high)
    own = (mark.low, mark.high)
    box = _box(frame, own, whole[1]) if mark.axis == "x" else _box(frame, whole[0], own)
    if box:
        yield path(boxes([box]), "band", role=mark.role)


def _note(mark: Note, frame: Frame) -> Iterator[Element]:
    place = place_of(frame, mark.x, mark.y)
    if place is None or not frame.holds(mark.x, mark.y):
        return
    text, (x, y) = shown(mark.text), place
    is_left = x + 6 + width_of(text) <= frame.cell_right
    at = {"x": short(x + 6 if is_left else x - 6), "y": short(max(frame.top + TEXT, y - 5))}
    names = f"note role-{mark.role}" + ("" if is_left else " end")
    element = Element("text", {"class": names, **at})
    element.text = text
    yield element
