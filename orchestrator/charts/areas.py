"""Marks that cover an area, as SVG elements: bands, bars, spans and stripes."""

import math
from collections.abc import Iterator
from statistics import median
from xml.etree.ElementTree import Element

from orchestrator.charts.chart import Band, Bars, Spans, Stripe
from orchestrator.charts.elements import MOST_TIPS, filled, path, with_tip
from orchestrator.charts.extents import Ends, boxes_of
from orchestrator.charts.frame import Frame, Scale
from orchestrator.charts.paths import Box, area, boxes, place_of, runs

NARROW = 3.0
"""Width up to which boxes have no edge: it would be most of them."""


def band(mark: Band, frame: Frame) -> Iterator[Element]:
    """Broken where either end is missing."""
    rows = list(zip(mark.x, mark.low, mark.high, strict=True))
    has = [place_of(frame, x, low) and place_of(frame, x, high) for x, low, high in rows]
    lows = [low if own else None for own, (_, low, _) in zip(has, rows, strict=True)]
    highs = [high if own else None for own, (_, _, high) in zip(has, rows, strict=True)]
    found = zip(runs(frame, mark.x, highs), runs(frame, mark.x, lows), strict=True)
    d = "".join(area(upper, lower) for upper, lower in found)
    if d:
        yield path(d, "band", role=mark.role)


def stripe(mark: Stripe, frame: Frame) -> Iterator[Element]:
    own = (mark.low, mark.high)
    across = _whole(frame.y) if mark.axis == "x" else _whole(frame.x)
    box = _box(frame, own, across) if mark.axis == "x" else _box(frame, across, own)
    if box:
        yield path(boxes([box]), "band", role=mark.role)


def _whole(scale: Scale) -> Ends:
    return scale.range.low, scale.range.high


def boxes_in(mark: Bars | Spans, frame: Frame, ids: str) -> Iterator[Element]:
    """One path of all of them; or one each, as long as each has something to say."""
    found = [(box, tip) for x, y, tip in boxes_of(mark) if (box := _box(frame, x, y))]
    if not found:
        return
    width = median(min(right - left, low - top) for (left, top, right, low), _ in found)
    look = "narrow" if width < NARROW else ""
    if not any(tip for _, tip in found) or len(found) > MOST_TIPS:
        yield filled(boxes(box for box, _ in found), mark.role, ids, look)
        return
    for box, tip in found:
        yield with_tip(filled(boxes([box]), mark.role, ids, look), tip)


def _box(frame: Frame, along: Ends, across: Ends) -> Box | None:
    """The rectangle in its place, cut at the frame; None outside of it, or without numbers."""
    x, y = _inside(frame.x, *along), _inside(frame.y, *across)
    return (x[0], y[0], x[1], y[1]) if x and y else None


def _inside(scale: Scale, one: float, other: float) -> Ends | None:
    """What of the stretch between two values is inside the frame, as places in order."""
    if math.isnan(one) or math.isnan(other):
        return None
    ends = sorted((scale.at(one), scale.at(other)))
    low, high = max(ends[0], scale.low), min(ends[1], scale.high)
    return (low, high) if low <= high else None
