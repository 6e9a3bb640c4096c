"""A matrix of values from -1 to 1 as coloured squares, each with its number."""

import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from orchestrator.charts.chart import Cells
from orchestrator.charts.frame import Frame
from orchestrator.charts.inks import HEAT_STEPS
from orchestrator.charts.lettering import EN_DASH, MINUS, TEXT, width_of
from orchestrator.charts.paths import boxes, short

SMALLER = 9.0
"""Height of the numbers where cells are small; in the smallest cells there are none."""


def heat_cells(mark: Cells, frame: Frame) -> Iterator[Element]:
    """The squares of one colour as one path, then the numbers."""
    squares: dict[str, list[tuple[float, float, float, float]]] = {}
    texts = []
    for row, values in enumerate(mark.values):
        for column, value in enumerate(values):
            box = _square(frame, row, column)
            name = heat_class(value)
            squares.setdefault(name, []).append(box)
            texts.append((box, number(value), name))
    for name, own in squares.items():
        yield Element("path", {"class": f"cell {name}", "d": boxes(own)})
    size = _size([text for _, text, _ in texts], frame)
    for box, text, name in texts if size else ():
        at = {"x": short((box[0] + box[2]) / 2), "y": short((box[1] + box[3]) / 2 + size * 0.36)}
        small = " smaller" if size == SMALLER else ""
        element = Element("text", {"class": f"on {name}{small}", **at})
        element.text = text
        yield element


def heat_class(value: float | None) -> str:
    """`heat-p7` of 0.68; `heat-none` of what is no number."""
    if value is None or not math.isfinite(value):
        return "heat-none"
    step = heat_step(value)
    return f"heat-{'m' if step < 0 else 'p'}{abs(step)}"


def heat_step(value: float) -> int:
    return round(max(-1.0, min(1.0, value)) * HEAT_STEPS)


def number(value: float | None) -> str:
    """Two decimals, or a dash."""
    if value is None or not math.isfinite(value):
        return EN_DASH
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", MINUS)


def _square(frame: Frame, row: int, column: int) -> tuple[float, float, float, float]:
    left, right = sorted((frame.x.at(column - 0.5), frame.x.at(column + 0.5)))
    top, bottom = sorted((frame.y.at(row - 0.5), frame.y.at(row + 0.5)))
    return left, top, right, bottom


def _size(texts: list[str], frame: Frame) -> float:
    """The largest height of text that fits every cell; 0: none does."""
    if not texts:
        return 0.0
    left, top, right, bottom = _square(frame, 0, 0)
    for size in (TEXT, SMALLER):
        widest = max(width_of(text, size) for text in texts)
        if widest <= right - left - 2 and size <= bottom - top - 2:
            return size
    return 0.0
