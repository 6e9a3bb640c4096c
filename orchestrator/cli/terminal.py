"""What every command prints with: a console, Markdown, JSON, lines."""

import sys
from typing import Any

from rich.console import Console

from budgets.ledger.storage import document
from orchestrator.watch.laid_out import LaidOut
from orchestrator.watch.listener import Listener


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
