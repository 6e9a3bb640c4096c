"""Marks as SVG elements."""

from collections.abc import Iterator
from typing import assert_never
from xml.etree.ElementTree import Element

from orchestrator.charts.areas import band, boxes_in, stripe
from orchestrator.charts.chart import (
    Band,
    Bars,
    Cells,
    Intervals,
    Line,
    Mark,
    Note,
    Points,
    Rule,
    Spans,
    Stripe,
)
from orchestrator.charts.elements import (
    LARGE,
    MOST_TIPS,
    SMALL,
    class_of,
    dash_of,
    drawn_size,
    path,
    shape_of,
    size_of,
    text_at,
    with_tip,
)
from orchestrator.charts.extents import tips
from orchestrator.charts.frame import Frame
from orchestrator.charts.heat import heat_cells
from orchestrator.charts.lettering import TEXT, shown, width_of
from orchestrator.charts.paths import Place, line, place_of, runs, shapes, short, steps, thinned

MOST_CASED = 4000
"""Characters of a line's path up to which it stands out from what it crosses by an edge."""

MEAN, CAP = 9.0, 4.0  # an interval's: the size of its mean, and half the height of its ends


def drawn(mark: Mark, frame: Frame, ids: str) -> Iterator[Element]:
    """The elements of one mark. `ids` is what its plot's ids begin with."""
    match mark:
        case Line():
            yield from _line(mark, frame)
        case Band():
            yield from band(mark, frame)
        case Points():
            yield from _points(mark, frame)
        case Bars() | Spans():
            yield from boxes_in(mark, frame, ids)
        case Intervals():
            yield from _intervals(mark, frame)
        case Rule():
            yield from _rule(mark, frame)
        case Stripe():
            yield from stripe(mark, frame)
        case Cells():
            yield from heat_cells(mark, frame)
        case Note():
            yield from _note(mark, frame)
        case _:
            assert_never(mark)


def _line(mark: Line, frame: Frame) -> Iterator[Element]:
    found = runs(frame, mark.x, mark.y)
    draw = steps if mark.is_step else line
    d = "".join(draw(thinned(run)) for run in found if len(run) > 1)
    if d:
        if not mark.is_thin and len(d) < MOST_CASED:
            yield path(d, "casing")
        looks = ["thin" if mark.is_thin else "", "pale" if mark.is_faint else "", dash_of(mark)]
        yield path(d, "line", *looks, role=mark.role)
    alone = [run[0] for run in found if len(run) == 1]
    if alone:
        yield path(shapes(alone, "dot", SMALL), "dot", "small", role=mark.role)


def _points(mark: Points, frame: Frame) -> Iterator[Element]:
    found = [
        (place, tip)
        for x, y, tip in zip(mark.x, mark.y, tips(mark), strict=True)
        if (place := place_of(frame, x, y)) and frame.holds(x or 0.0, y or 0.0)
    ]
    if not found:
        return
    shape, size = shape_of(mark), size_of(mark, frame, len(found))
    names = [class_of(shape), {SMALL: "small", LARGE: "large"}.get(size, "")]
    size = drawn_size(shape, size)
    names += ["pale"] if mark.is_faint else []
    if not mark.tips or len(found) > MOST_TIPS:
        yield path(shapes([place for place, _ in found], shape, size), *names, role=mark.role)
        return
    for place, tip in found:
        yield with_tip(path(shapes([place], shape, size), *names, role=mark.role), tip)


def _intervals(mark: Intervals, frame: Frame) -> Iterator[Element]:
    ranges, means = [], []
    for at, low, mean, high in zip(mark.at, mark.low, mark.mean, mark.high, strict=True):
        ends = [_turned(mark, frame, value, at) for value in (low, high)]
        if ends[0] and ends[1]:
            ranges.append(_capped(ends[0], ends[1], is_horizontal=mark.is_horizontal))
        place = _turned(mark, frame, mean, at)
        if place:
            means.append(place)
    if ranges:
        yield path("".join(ranges), "range", role=mark.role)
    if means:
        fill = "solid" if mark.is_filled else "open"
        yield path(shapes(means, "diamond", MEAN), fill, role=mark.role)


def _turned(mark: Intervals, frame: Frame, value: float | None, at: float | None) -> Place | None:
    return place_of(frame, value, at) if mark.is_horizontal else place_of(frame, at, value)


def _capped(low: Place, high: Place, *, is_horizontal: bool) -> str:
    """A line with a cap at either end."""
    caps = []
    for x, y in (low, high):
        start = (x, y - CAP) if is_horizontal else (x - CAP, y)
        caps.append(
            f"M{short(start[0])} {short(start[1])}{'v' if is_horizontal else 'h'}{2 * CAP:g}"
        )
    to = f"H{short(high[0])}" if is_horizontal else f"V{short(high[1])}"
    return f"M{short(low[0])} {short(low[1])}{to}{''.join(caps)}"


def _rule(mark: Rule, frame: Frame) -> Iterator[Element]:
    scale = frame.x if mark.axis == "x" else frame.y
    if not scale.range.holds(mark.value):
        return
    at = short(scale.at(mark.value))
    upright = f"M{at} {short(frame.top)}V{short(frame.bottom)}"
    level = f"M{short(frame.left)} {at}H{short(frame.right)}"
    d = upright if mark.axis == "x" else level
    yield path(d, "line", "rule", dash_of(mark), role=mark.role)


def _note(mark: Note, frame: Frame) -> Iterator[Element]:
    place = place_of(frame, mark.x, mark.y)
    if place is None or not frame.holds(mark.x, mark.y):
        return
    text, (x, y) = shown(mark.text), place
    fits = x + 6 + width_of(text) <= frame.cell_right
    names = f"note role-{mark.role}{'' if fits else ' end'}"
    yield text_at(short(x + 6 if fits else x - 6), short(max(frame.top + TEXT, y - 5)), text, names)
