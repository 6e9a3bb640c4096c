"""What a report consists of, before it is Markdown or a page: paragraphs, lists, tables.

Text is a line of Markdown with code, bold and escapes (`budgets.plain.plain`) and nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from budgets.table import table


@dataclass(frozen=True)
class Heading:
    """What a part is called."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of points."""

    entries: Sequence[str]


@dataclass(frozen=True)
class Met:
    """Whether something is there that is asked for."""

    is_met: bool

    def __str__(self) -> str:
        return "yes" if self.is_met else "**no**"


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns, each as `str` says it; the first names its row.

    Columns are called as `budgets.table` wants it. The caption is for a page, where a table has no
    heading of its own.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


Block = Heading | Text | Items | Table


def markdown(blocks: Iterable[Block]) -> list[str]:
    """Their lines, a blank one between any two."""
    lines: list[str] = []
    for block in blocks:
        lines += ["", *_lines(block)] if lines else _lines(block)
    return lines


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"## {text}"
        case Text(text):
            yield text
        case Items(entries):
            yield from (f"- {entry}" for entry in entries)
        case Table(_, columns, rows):
            yield from table(columns, rows)
        case _:
            assert_never(block)
