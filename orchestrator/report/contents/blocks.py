"""The blocks that a report consists of. Text is a line of the Markdown that `prose` knows."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.charts.chart import Plot
from orchestrator.report.model import Mood


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of points."""

    entries: Sequence[str]


@dataclass(frozen=True)
class Heading:
    """What a part of a section is called."""

    text: str


@dataclass(frozen=True)
class Ruler:
    """Places in a knob's range, 0 to 1: where it was, and where it is to go."""

    baseline: float
    recommended: float | None


@dataclass(frozen=True)
class Met:
    """Whether something is there that is asked for."""

    is_met: bool


Cell = str | Ruler | Met


@dataclass(frozen=True)
class Column:
    """One column. Of numbers: to be read from the right."""

    title: str
    is_number: bool = True


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns; the first names its row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


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


def names(title: str) -> Column:
    """A column of text."""
    return Column(title, is_number=False)
