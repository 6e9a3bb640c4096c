"""Those who are told of a run that is watched: a terminal, a pipe, a program."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import orjson
from rich.console import Console, RenderableType

from budgets.events import Event
from budgets.plain import printable
from budgets.state import RunState
from orchestrator.watch.later import later
from orchestrator.watch.lines import is_lasting, line_of
from orchestrator.watch.screen import Screen
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.view import View

ABOVE = 3
"""Lines of the terminal that the view leaves to what is said above it."""


class OnTerminal:
    """A view at the bottom of the terminal; it stays there in the end. A context manager."""

    def __init__(self, console: Console, now: Callable[[], datetime]) -> None:
        self._screen = Screen(console, self._picture, ABOVE)
        self._now = now
        self._shown: Snapshot | None = None

    def __enter__(self) -> Self:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._screen.say(View(self._shown))
        self._screen.stop()

    def hear(self, state: RunState, event: Event) -> None:
        if is_lasting(event) and (line := line_of(state, event, brief=True)) is not None:
            self._screen.say(line)

    def see(self, found: Snapshot) -> bool:
        self._shown = found
        return self._screen.is_alive()

    def _picture(self, lines: int) -> RenderableType | None:
        return None if self._shown is None else View(later(self._shown, self._now()), lines)


class AsLines:
    """Where it stands, a line a record from then on, and where it stands in the end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._whose = ""
        self._is_heard = True

    def hear(self, state: RunState, event: Event) -> None:
        if (line := line_of(state, event)) is not None:
            self._say(line)

    def see(self, found: Snapshot) -> bool:
        if found.whose != self._whose:
            self._whose = found.whose
            self._say(f"{self._directory}: {found.whose}")
            self._say(found.said)
        return self._is_heard

    def _say(self, line: str) -> None:
        self._is_heard = self._is_heard and write(f"{printable(line)}\n")


class AsJson:
    """An object a line whenever there is something new."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: tuple[Any, ...] = ()

    def hear(self, state: RunState, event: Event) -> None:
        """Its snapshot says it."""

    def see(self, found: Snapshot) -> bool:
        known = (found.records, found.standing, found.whose)
        if known == self._known:
            return True
        self._known = known
        document = {"directory": str(self._directory), **found.model_dump(mode="json")}
        return write(f"{orjson.dumps(document).decode()}\n")


def write(text: str) -> bool:
    """At once; whether anybody reads it."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # so that nothing fails on what is left to flush
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
