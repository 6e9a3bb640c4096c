"""What every command prints with: a console, Markdown, JSON, lines."""

import os
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.table import Table

from budgets.storage import document


class Listener(Console):
    """A console that falls silent when its reader leaves, and stops no run."""

    def on_broken_pipe(self) -> None:
        silence(self)


def silence(console: Console) -> None:
    """Whatever it prints from now on goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), console.file.fileno())


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


def console(*, stderr: bool = False) -> Console:
    """As wide as a report's tables where there is no terminal to ask."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else 110
    return Listener(stderr=stderr, width=width, emoji=False)  # python:train:f has no picture


def print_markdown(text: str) -> None:
    console().print(LaidOut(text), crop=False)


def print_json(content: Any) -> None:
    write_bytes(document(content))


def print_line(text: str) -> None:
    """Also where nobody listens: stdout may be closed."""
    if sys.stdout is not None:
        sys.stdout.write(f"{text}\n")


def write_bytes(data: bytes) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
