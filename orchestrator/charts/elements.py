"""SVG elements by their looks, which are classes: `style` has what each means."""

from xml.etree.ElementTree import Element, SubElement

from orchestrator.charts.chart import Line, Points, Role, Rule, Shape
from orchestrator.charts.frame import Frame
from orchestrator.charts.inks import INKS
from orchestrator.charts.lettering import shown

MOST_TIPS = 300
"""Marks of one kind that each say something when they are pointed at."""

SMALL, USUAL, LARGE = 3.2, 5.0, 9.0
"""Sizes of points."""

CROWD = 150.0
"""Units of the frame for each point below which they are drawn smaller."""


def path(d: str, *classes: str, role: Role | None = None) -> Element:
    """A path of these looks."""
    names = [name for name in classes if name]
    if role:
        names.append(f"role-{role}")
    return Element("path", {"class": " ".join(names), "d": d})


def filled(d: str, role: Role, ids: str, look: str = "") -> Element:
    """An area in its role's texture, which is defined under an id of its own."""
    texture = INKS[role].texture
    if texture in ("solid", "hollow"):
        return path(d, "area", "hollow" if texture == "hollow" else "", look, role=role)
    element = path(d, "textured", look, role=role)
    element.set("fill", f"url(#{ids}-{role})")
    return element


def with_tip(element: Element, tip: str) -> Element:
    """The element, saying `tip` when it is pointed at."""
    if tip:
        SubElement(element, "title").text = shown(tip)
    return element


def text_at(x: str, y: str, text: str, classes: str = "", whole: str = "") -> Element:
    """A text; `whole` is what it says when it is pointed at, where it was cut."""
    element = Element("text", {"x": x, "y": y})
    if classes:
        element.set("class", classes)
    if whole and whole != text:
        SubElement(element, "title").text = whole
        element[0].tail = text
    else:
        element.text = text
    return element


def dash_of(mark: Line | Rule) -> str:
    """The class that dashes a line: its role's own dash, or any where it has none."""
    if INKS[mark.role].dash and (mark.is_dashed or not (isinstance(mark, Rule) or mark.is_thin)):
        return "dash-own"
    return "dash" if mark.is_dashed else ""


def shape_of(mark: Points) -> Shape:
    """The shape that was asked for, or else its role's."""
    return mark.shape if mark.shape != "dot" else INKS[mark.role].shape


def class_of(shape: Shape) -> str:
    """The class of a shape: of those that a pen draws their own."""
    return {"dot": "dot", "cross": "cross"}.get(shape, "solid")


def size_of(mark: Points, frame: Frame, count: int) -> float:
    """How large its points are drawn, if that many of them are in the frame."""
    if mark.is_large:
        return LARGE
    area = (frame.right - frame.left) * (frame.bottom - frame.top)
    return SMALL if area < CROWD * count else USUAL


def drawn_size(shape: Shape, size: float) -> float:
    """The size as drawn: to be known by its form, a shape is larger than a dot."""
    return size * {"dot": 1.0, "square": 1.1}.get(shape, 1.3)
