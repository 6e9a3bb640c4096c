"""A plot as one SVG element for a page: no colours of its own, no scripts, every text escaped."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from xml.etree.ElementTree import Element, SubElement, tostring

from orchestrator.charts.chart import Bars, Plot, Role, Spans
from orchestrator.charts.draw import drawn
from orchestrator.charts.elements import text_at
from orchestrator.charts.frame import WIDTH, Frame
from orchestrator.charts.inks import INKS, Texture
from orchestrator.charts.labels import (
    APART,
    LEVEL,
    TICK,
    Label,
    RuleLabel,
    beyond,
    is_tilted,
    rules_above,
    rules_beside,
    tilted,
    x_labels,
    y_labels,
)
from orchestrator.charts.layout import EDGE, LINE, below, frames, why_empty
from orchestrator.charts.legend import legend
from orchestrator.charts.lettering import BOLD, TEXT, cut, shown, width_of
from orchestrator.charts.paths import short
from orchestrator.charts.style import style

STYLE = style()
"""What a page's style sheet must hold for its plots."""

STROKES: Mapping[Texture, str] = {
    "hatched": "M-1 -1L7 7M-1 5L1 7M5 -1L7 1",
    "crossed": "M-1 -1L7 7M-1 7L7 -1",
    "striped": "M0 3H6",
}
"""What is left out of an area, of each 6 by 6 units."""


def svg(plot: Plot) -> str:
    """`plot` as an `<svg>` element, whose ids begin with `drawn-` and its name."""
    ids = re.sub(r"[^A-Za-z0-9_-]", "-", f"drawn-{plot.name}")
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "plot", "role": "img"})
    root.set("aria-labelledby", f"{ids}-title {ids}-desc")
    _told(root, "title", f"{ids}-title", plot.title)
    _told(root, "desc", f"{ids}-desc", plot.description or plot.caption)
    named, top = legend(plot, 0.0, ids)
    placed, bottom = frames(plot, top + (4 if named else 0)) if plot.charts else ([], top)
    root.set("viewBox", f"0 0 {WIDTH:g} {short(bottom + 2)}")
    defs = SubElement(root, "defs")
    defs.extend(_patterns(plot, ids))
    root.extend(named)
    for place, frame in enumerate(placed):
        _add_chart(root, defs, frame, f"{ids}-{place}", ids)
    if not len(defs):
        root.remove(defs)
    return tostring(root, encoding="unicode")


def _told(root: Element, tag: str, own: str, text: str) -> None:
    SubElement(root, tag, {"id": own}).text = shown(text)


def _patterns(plot: Plot, ids: str) -> Iterator[Element]:
    """Textures of the areas that the plot has."""
    marks = chain.from_iterable(chart.marks for chart in plot.charts)
    roles = dict.fromkeys(mark.role for mark in marks if isinstance(mark, Bars | Spans))
    for role in roles:
        texture = INKS[role].texture
        if texture in STROKES:
            yield _pattern(f"{ids}-{role}", role, STROKES[texture])


def _pattern(own: str, role: Role, strokes: str) -> Element:
    size = {"width": "6", "height": "6", "patternUnits": "userSpaceOnUse"}
    pattern = Element("pattern", {"id": own, **size})
    SubElement(pattern, "path", {"class": f"ground role-{role}", "d": "M0 0h6v6H0Z"})
    SubElement(pattern, "path", {"class": "stroke", "d": strokes})
    return pattern


def _add_chart(root: Element, defs: Element, frame: Frame, own: str, ids: str) -> None:
    why = why_empty(frame.chart)
    group = SubElement(root, "g")
    group.extend(_titles(frame, is_empty=bool(why)))
    if why:
        group.extend(_nothing(frame, why))
        return
    box = {"x": short(frame.left), "y": short(frame.top)}
    box |= {"width": short(frame.right - frame.left), "height": short(frame.bottom - frame.top)}
    clip = SubElement(defs, "clipPath", {"id": own})
    SubElement(clip, "rect", box)
    group.extend(_axes(frame))
    # Notes and points may reach over the frame's edge by half their size; nothing else may.
    inside: Element | None = None
    for mark in frame.chart.marks:
        for element in drawn(mark, frame, ids):
            if element.tag == "text" or _is_point(element):
                group.append(element)
                inside = None
                continue
            if inside is None:
                inside = SubElement(group, "g", {"clip-path": f"url(#{own})"})
            inside.append(element)
    group.extend(_rule_names(frame))


def _is_point(element: Element) -> bool:
    return element.get("class", "").split()[0] in ("dot", "cross", "solid")


def _text(x: float, y: float, text: str, classes: str = "", whole: str = "") -> Element:
    return text_at(short(x), short(y), text, classes, whole)


def _titles(frame: Frame, *, is_empty: bool) -> Iterator[Element]:
    chart, room = frame.chart, frame.cell_right - frame.cell_left
    y = frame.top - frame.head + TEXT
    if chart.title:
        name = cut(chart.title, room / BOLD)
        yield _text(frame.cell_left, y, name, "name", shown(chart.title))
        y += LINE
    if is_empty:
        return
    outside = beyond(frame)
    if outside:
        yield _text(frame.cell_right, y, outside, "faint end")
        room -= width_of(outside) + APART
    if frame.has_y_title and chart.y.label:
        yield _text(frame.cell_left, y, cut(chart.y.label, room), "faint", shown(chart.y.label))
    if frame.has_x_title and chart.x.label:
        yield _x_title(frame)


def _x_title(frame: Frame) -> Element:
    """Below the middle of the frame, within its cell."""
    title = cut(frame.chart.x.label, frame.cell_right - frame.cell_left)
    half = width_of(title) / 2
    at = (frame.left + frame.right) / 2
    at = max(frame.cell_left + half, min(frame.cell_right - half, at))
    y = frame.bottom + below(frame) + LINE - 3
    return _text(at, y, title, "faint middle", shown(frame.chart.x.label))


def _nothing(frame: Frame, why: str) -> Iterator[Element]:
    left, right = frame.cell_left, frame.cell_right
    d = f"M{short(left + 1)} {short(frame.top)}H{short(right - 1)}V{short(frame.bottom)}"
    yield Element("path", {"class": "nothing", "d": f"{d}H{short(left + 1)}Z"})
    middle = (frame.top + frame.bottom) / 2 + TEXT / 3
    yield _text((left + right) / 2, middle, cut(why, right - left - 12), "faint why", why)


def _axes(frame: Frame) -> Iterator[Element]:
    """Grid, axis and labels. Categories have no grid of their own across them."""
    chart, top, bottom = frame.chart, frame.top, frame.bottom
    is_named = bool(chart.x.categories) and is_tilted(chart.x, frame.x)
    across = y_labels(chart.y, frame.y, frame.left - frame.cell_left - TICK)
    along = tilted(chart.x, frame.x, frame.cell_left) if is_named else x_labels(chart.x, frame.x)
    lines = "".join(f"M{short(frame.left)} {short(own.at)}H{short(frame.right)}" for own in across)
    lines += "".join(
        f"M{short(own.at)} {short(top)}V{short(bottom)}" for own in along if not chart.x.categories
    )
    yield Element("path", {"class": "grid", "d": lines})
    d = f"M{short(frame.left)} {short(top)}V{short(bottom)}H{short(frame.right)}"
    yield Element("path", {"class": "axis", "d": d})
    for label in across:
        yield _text(frame.left - TICK, label.at + TEXT * 0.36, label.text, "tick end", label.whole)
    for label in along:
        yield _below(label, bottom, is_turned=is_named)


def _below(label: Label, bottom: float, *, is_turned: bool) -> Element:
    if not is_turned:
        return _text(label.at, bottom + TICK + TEXT * 0.8, label.text, "tick middle", label.whole)
    x, y = label.at + TEXT * 0.3, bottom + TICK + TEXT * 0.6
    element = _text(x, y, label.text, "tick end", label.whole)
    element.set("transform", f"rotate(-37 {short(x)} {short(y)})")
    return element


def _rule_names(frame: Frame) -> Iterator[Element]:
    """Names of rules, which cover the lines that lead to others."""
    beside = rules_beside(frame, frame.cell_right - frame.right - EDGE)
    above = [(own, frame.top - 5 - LEVEL * own.level) for own in rules_above(frame)]
    start, end = short(frame.right + 1), short(frame.right + EDGE - 4)
    for own in beside:
        yield _lead(f"M{start} {short(own.of)}L{end} {short(own.at)}")
    for own, y in above:
        yield _lead(f"M{short(own.of)} {short(frame.top)}V{short(y + 2)}")
    for own in beside:
        yield _rule_name(frame.right + EDGE - 2, own.at + TEXT * 0.36, own, "note")
    for own, y in above:
        yield _rule_name(own.at, y, own, "note middle")


def _lead(d: str) -> Element:
    return Element("path", {"class": "lead", "d": d})


def _rule_name(x: float, y: float, own: RuleLabel, classes: str) -> Element:
    return _text(x, y, own.text, classes, own.whole)
