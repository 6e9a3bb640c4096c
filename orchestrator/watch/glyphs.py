"""Bars, a sparkline and lines that fit, in characters that a terminal can show."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style

from budgets.plain import printable

Piece = tuple[str, Style | None]
Line = tuple[Piece, ...]

FAINT, STRONG = Style(dim=True), Style(bold=True)
GOOD, BAD, ODD = Style(color="green"), Style(color="red", bold=True), Style(color="yellow")
"""Colours repeat what words say: nothing is said by them alone."""


class Glyphs(NamedTuple):
    """What shapes are drawn with."""

    spent: str
    reserved: str
    empty: str
    levels: str  # of a sparkline, the lowest first
    short: str  # in a sparkline: a value that does not compare with the others
    cut: str  # in the place of what did not fit
    about: str  # plus and minus


UNICODE = Glyphs("█", "▒", "░", "▁▂▃▄▅▆▇█", "·", "…", "±")
ASCII = Glyphs("#", "=", "-", "_.:-=+*#", "~", "..", "+-")


def glyphs_for(encoding: str) -> Glyphs:
    """Those that can be written in that encoding."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def bar(width: int, spent: float, reserved: float, glyphs: Glyphs) -> str:
    """A bar of that width, filled by two shares of it that are 1 together at most."""
    full = min(width, round(width * max(0.0, spent)))
    both = min(width, max(full, round(width * max(0.0, spent + reserved))))
    parts = (glyphs.spent * full, glyphs.reserved * (both - full), glyphs.empty * (width - both))
    return "".join(parts)


def sparkline(values: Sequence[float | None], among: Iterable[float], glyphs: Glyphs) -> str:
    """A character a value, the higher the larger it is; None where it does not compare.

    The scale reaches from the lowest to the highest of the values and of those that they are
    `among`.
    """
    known = [value for value in values if value is not None]
    every = [*known, *among] if known else []
    low, high = min(every, default=0.0), max(every, default=0.0)
    steps = len(glyphs.levels) - 1
    span = high - low

    def level(value: float) -> str:
        return glyphs.levels[round(steps * (value - low) / span) if span > 0 else steps // 2]

    return "".join(glyphs.short if value is None else level(value) for value in values)


def shown(text: str, encoding: str) -> str:
    """Text from anywhere as a terminal of that encoding can show it; it does not steer it."""
    return printable(text).encode(encoding, "replace").decode(encoding)


def fitted(line: Line, width: int, cut: str) -> Line:
    """The line in so many columns at most; what is too long ends in `cut`."""
    if sum(cell_len(text) for text, _ in line) <= width:
        return line
    room, kept = max(0, width - len(cut)), []
    for text, style in line:
        if cell_len(text) > room:
            kept.append(((set_cell_size(text, room).rstrip() + cut)[:width], style))
            break
        kept.append((text, style))
        room -= cell_len(text)
    return tuple(kept)


def wrapped(line: Line, width: int) -> list[Line]:
    """The line broken between words where it is wider; a word that is too wide stays whole."""
    lines: list[list[Piece]] = [[]]
    room = width
    for text, style in line:
        for word in re.findall(r"\S+\s*|\s+", text):
            if lines[-1] and cell_len(word.rstrip()) > room:
                lines.append([])
                room = width
            lines[-1].append((word, style))
            room -= cell_len(word)
    return [tuple(one) for one in lines]


def padded(text: str, width: int, cut: str) -> str:
    """The text in exactly so many columns."""
    (fit, _), *_ = fitted(((text, None),), width, cut)
    return set_cell_size(fit, width)
