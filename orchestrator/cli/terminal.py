"""Printing: lines, Markdown and JSON, to a terminal, a pipe, or nobody."""

import os
import sys
from typing import Any

from rich.console import Console

from budgets.storage import document


class Listener(Console):
    """A console that falls silent when its reader leaves, so that no run stops."""

    def on_broken_pipe(self) -> None:
        silence(self)


def silence(console: Console) -> None:
    """Send everything that it prints from now on nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), console.file.fileno())


def console(*, stderr: bool = False) -> Console:
    """Return a console: as wide as the terminal, or as a report's tables."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else 110
    return Listener(stderr=stderr, width=width, emoji=False)  # `:train:` in a name is no emoji


def print_markdown(text: str) -> None:
    from orchestrator.cli.markdown import Page  # imports a parser

    own = console()
    if own.is_terminal:
        own.print(Page(text), crop=False)
        return
    with own.capture() as captured:
        own.print(Page(text), crop=False)
    lines = (line.rstrip() for line in captured.get().splitlines())
    own.out("\n".join(lines), highlight=False)


def print_json(content: Any) -> None:
    write_bytes(document(content))


def print_line(text: str) -> None:
    if sys.stdout is not None:  # it may be closed
        sys.stdout.write(f"{text}\n")


def write_bytes(data: bytes) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
