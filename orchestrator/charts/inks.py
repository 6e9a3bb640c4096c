"""What each role looks like: a colour for light and dark paper, and a dash, shape or texture.

The hues are those of M. Okabe and K. Ito, "Color Universal Design", made darker for light paper and
lighter for dark paper until each stands out from it by 3 to 1. Roles that meet in one plot differ
by more than their hue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.charts.chart import Role, Shape

LIGHT_PAPER, DARK_PAPER = "#ffffff", "#16181d"

Texture = Literal["solid", "hatched", "crossed", "striped", "hollow"]


@dataclass(frozen=True)
class Ink:
    """How a role is drawn."""

    light: str
    dark: str
    dash: tuple[float, ...] = ()  # of its lines; none: unbroken
    shape: Shape = "dot"  # of its points
    texture: Texture = "solid"  # of its areas


_BLUE, _VERMILION, _GREEN = ("#0072b2", "#4ba3e3"), ("#d55e00", "#f0803c"), ("#008f68", "#2bc49a")
_SKY, _ORANGE, _PURPLE = ("#3f8fc0", "#7cc4ee"), ("#b87700", "#e69f00"), ("#a8538a", "#dd92bd")
_BLACK, _GREY = ("#262626", "#ececec"), ("#6e6e6e", "#a3a3a3")

INKS: Mapping[Role, Ink] = {
    "baseline": Ink(*_GREY, dash=(6, 4), shape="square"),
    "candidate": Ink(*_SKY),
    "best": Ink(*_BLUE),
    "mean": Ink(*_ORANGE, dash=(9, 3), shape="square"),
    "winner": Ink(*_GREEN, dash=(12, 3, 3, 3), shape="diamond"),
    "luck": Ink(*_PURPLE, dash=(2, 3), shape="triangle"),
    "ok": Ink(*_SKY),
    "failed": Ink(*_VERMILION, dash=(4, 2), shape="cross", texture="hatched"),
    "lost": Ink(*_BLACK, dash=(2, 2), shape="triangle", texture="crossed"),
    "useful": Ink(*_BLUE),
    "reserved": Ink(*_BLUE, dash=(4, 3), shape="square", texture="hollow"),
    "idle": Ink("#8c8c8c", "#7d7d7d", dash=(2, 3), shape="triangle"),
    "wasted": Ink(*_VERMILION, dash=(6, 3), shape="cross", texture="hatched"),
    "limit": Ink(*_BLACK, dash=(10, 3), shape="diamond"),
    "muted": Ink("#767676", "#8f8f8f", dash=(3, 3), texture="hollow"),
    "series1": Ink(*_BLUE),
    "series2": Ink(*_VERMILION, dash=(7, 3), shape="square", texture="hatched"),
    "series3": Ink(*_GREEN, dash=(2, 2.5), shape="triangle", texture="hollow"),
    "series4": Ink(*_PURPLE, dash=(9, 3, 2, 3), shape="diamond", texture="crossed"),
    "series5": Ink(*_ORANGE, dash=(4, 2), shape="cross", texture="striped"),
    "series6": Ink(*_BLACK, dash=(12, 3, 2, 3, 2, 3), shape="square"),
}

HEAT_STEPS = 10
"""Steps of a heat cell's colour from 0 to 1, and from 0 to -1."""

_ENDS = {"light": (_BLUE[0], "#ffffff", _VERMILION[0]), "dark": ("#4ba3e3", "#23262d", "#f0803c")}


def heat(step: int, paper: Literal["light", "dark"]) -> str:
    """The colour of a heat cell: of -10 (blue) to 10 (vermilion)."""
    below, middle, above = _ENDS[paper]
    return _mixed(middle, above if step > 0 else below, abs(step) / HEAT_STEPS)


def text_on(colour: str) -> str:
    """Black or white, whichever is read more easily on `colour`."""
    return max(("#000000", "#ffffff"), key=lambda own: contrast(own, colour))


def contrast(one: str, other: str) -> float:
    """By how much two colours differ in lightness, 1 to 21: WCAG 2.2, contrast ratio."""
    lights = sorted((_luminance(one), _luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _mixed(one: str, other: str, share: float) -> str:
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
