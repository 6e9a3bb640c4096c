"""What a report consists of, before it is Markdown or a page: paragraphs, lists, tables.

Text is a line of Markdown with code, bold and escapes (`formatting.plain`) and nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from budgets.formatting import table


class Shown(Protocol):
    """What every block can do."""

    def markdown(self) -> Iterator[str]:
        """Its lines."""
        ...


@dataclass(frozen=True)
class Heading:
    """What a part of a section is called."""

    text: str

    def markdown(self) -> Iterator[str]:
        yield f"### {self.text}"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def markdown(self) -> Iterator[str]:
        yield self.text


@dataclass(frozen=True)
class Items:
    """A list of points."""

    entries: Sequence[str]

    def markdown(self) -> Iterator[str]:
        return (f"- {entry}" for entry in self.entries)


@dataclass(frozen=True)
class Met:
    """Whether something is there that is asked for."""

    is_met: bool

    def __str__(self) -> str:
        return "yes" if self.is_met else "**no**"


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns, each as `str` says it; the first names its row.

    Columns are called as `budgets.formatting.table` wants it.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def markdown(self) -> Iterator[str]:
        if self.caption:
            yield from (f"{self.caption}:", "")
        yield from table(self.columns, self.rows)


Block = Heading | Text | Items | Table


def markdown(blocks: Iterable[Shown]) -> list[str]:
    """Their lines, a blank one between any two."""
    found: list[str] = []
    for block in blocks:
        found += ["", *block.markdown()] if found else block.markdown()
    return found
