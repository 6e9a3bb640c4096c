"""Markdown on a terminal, and in a pipe with tables as wide as they need to be."""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table


class _Table(TableElement):
    """A table whose words are never cut: in a pipe it may be wider than the text around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            for column in table.columns:
                column.overflow = "fold"
                if not console.is_terminal:
                    wide = options.update(width=100_000)
                    cells = [column.header, *column.cells]
                    sizes = (console.measure(cell, options=wide).minimum for cell in cells)
                    column.min_width = max(sizes)
            yield table


class Page(Markdown):
    """To be printed with `crop=False`: a table may be wider than the console."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _Table,
    }
