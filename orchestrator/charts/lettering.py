"""How much room text takes, before anybody has drawn it; and text cut to the room there is.

Widths are those of a wide face (DejaVu Sans), so that no other overflows.
"""

import unicodedata
from collections.abc import Sequence

from budgets.plain import printable

TEXT = 12.0
"""Height of text in a plot's own units: a plot is 800 of them wide."""

BOLD = 1.1
"""How much wider bold text is."""

MINUS, TIMES, EN_DASH = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"

_WIDTHS = {
    **dict.fromkeys("ijlI'|", 0.30),
    **dict.fromkeys("frt.,:;!()[]{}/\\- ", 0.41),
    **dict.fromkeys("mwMW@%", 0.97),
    **dict.fromkeys("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", 0.44),
    **dict.fromkeys(TIMES + MINUS + "+=<>~", 0.84),
    "…": 1.0,
}


def width_of(text: str, size: float = TEXT) -> float:
    """About how wide `text` is, rather more than less."""
    return size * sum(map(_width, text))


def widest(texts: Sequence[str]) -> float:
    """The width of the widest; 0 of none."""
    return max(map(width_of, texts), default=0.0)


def _width(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.74 if character.isupper() else 0.64


def cut(text: str, room: float) -> str:
    """`text` in one line, as much of its beginning as `room` holds, with … for the rest."""
    line = shown(text)
    if width_of(line) <= room:
        return line
    room -= width_of("…")
    end = 0
    while end < len(line) and (room := room - TEXT * _width(line[end])) >= 0:
        end += 1
    return f"{line[:end].rstrip()}…"


def shown(text: str) -> str:
    """`text` in one line, without characters that steer, turn around, or are none in XML."""
    return " ".join(printable(text).split())
