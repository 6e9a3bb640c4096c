"""The blocks that a report consists of: `budgets.blocks`, and what a budget report has none of."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from budgets import blocks
from budgets.blocks import Heading, Items, Table, Text
from budgets.plain import plain
from budgets.words import sentence_case
from orchestrator.charts.chart import Plot
from orchestrator.report.model import Mood

RULER = 11
"""Characters of a knob's range."""


@dataclass(frozen=True)
class Ruler:
    """Places in a knob's range, 0 to 1: where it was, and where it is to go."""

    baseline: float
    recommended: float | None

    def __str__(self) -> str:
        """`···○··●····`."""
        marks = ["·"] * RULER
        marks[_place(self.baseline)] = "○"
        if self.recommended is not None:
            marks[_place(self.recommended)] = "●"
        return "".join(marks)


def _place(unit: float) -> int:
    return min(max(int(unit * RULER), 0), RULER - 1)


@dataclass(frozen=True)
class Figure:
    """A plot with its caption."""

    plot: Plot


@dataclass(frozen=True)
class Log:
    """The last lines of a file, as they are: no Markdown."""

    where: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Commands:
    """Lines for a shell, as they are."""

    lines: Sequence[str]


Block = Text | Items | Heading | Table | Figure | Log | Commands


@dataclass(frozen=True)
class Section:
    """A part of the report with a title of its own."""

    name: str  # its anchor
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Lead:
    """How a page about something else than one run begins."""

    name: str  # of what it is about
    about: str  # what that is, in a few words
    heading: str
    sentence: str
    mood: Mood = "open"


def without_headings(own: Iterable[blocks.Block]) -> Iterator[Block]:
    """Those of a budget report that stand in a section, which has a title, and in captions."""
    return (block for block in own if not isinstance(block, Heading))


def why_none(reason: str) -> Text:
    """A reason from elsewhere as a sentence of its own."""
    return Text(f"{sentence_case(plain(reason)).rstrip('.')}.")
