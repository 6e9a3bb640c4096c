"""Markdown on a terminal and elsewhere: tables as wide as they need to be."""

from collections.abc import Iterator
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.table import Table


class _Table(TableElement):
    """Where there is no room a word is folded; elsewhere than on a terminal there is always."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            for column in table.columns:
                column.overflow = "fold"
                if not console.is_terminal:
                    cells = (console.measure(cell, options=_wide(options)) for cell in column.cells)
                    least = max((cell.minimum for cell in cells), default=0)
                    column.min_width = max(least, console.measure(column.header).minimum)
            yield table


def _wide(options: ConsoleOptions) -> ConsoleOptions:
    return options.update(width=100_000)


class LaidOut(Markdown):
    """To be printed with `crop=False`: a table may be wider than the console."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _Table,
    }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield from super().__rich_console__(console, options)
            return
        for line in Segment.split_lines(self._segments(console, options)):
            yield Segment("".join(part.text for part in line).rstrip() + "\n")

    def _segments(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        part: Any
        for part in super().__rich_console__(console, options):
            yield from [part] if isinstance(part, Segment) else console.render(part, options)
