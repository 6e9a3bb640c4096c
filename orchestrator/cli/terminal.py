"""What every command prints with: a console, Markdown, JSON, lines."""

import os
import sys
from typing import Any

from rich.console import Console

from budgets.storage import document


class Listener(Console):
    """A console that falls silent when its reader leaves, and stops no run."""

    def on_broken_pipe(self) -> None:
        silence(self)


def silence(console: Console) -> None:
    """Whatever it prints from now on goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), console.file.fileno())


def console(*, stderr: bool = False) -> Console:
    """As wide as a report's tables where there is no terminal to ask."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else 110
    return Listener(stderr=stderr, width=width, emoji=False)  # python:train:f has no picture


def print_markdown(text: str) -> None:
    from orchestrator.cli.markdown import LaidOut  # not for a line of text

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
