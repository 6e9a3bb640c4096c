"""Those who are told of what is watched, a run or a campaign: a terminal, a pipe, a program."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import orjson
from rich.console import Console, RenderableType

from budgets.events import Event
from budgets.plain import printable
from budgets.state import RunState
from orchestrator.watch.lines import is_lasting, line_of
from orchestrator.watch.screen import Screen

ABOVE = 3
"""Lines of the terminal that the view leaves to what is said above it."""

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Showing(Generic[Seen]):
    """What there is to show of it."""

    picture: Callable[[Seen, int | None], RenderableType]  # now, in so many lines at most
    news: Callable[[Seen | None, Seen], Iterator[str]]  # what stands otherwise than before
    key: Callable[[Seen], object]  # another one where there is something new
    document: Callable[[Seen], dict[str, Any]]


class OnTerminal(Generic[Seen]):
    """A picture at the bottom of the terminal; it stays there in the end. A context manager."""

    def __init__(self, console: Console, showing: Showing[Seen]) -> None:
        self._screen = Screen(console, self._picture, ABOVE)
        self._showing = showing
        self._found: Seen | None = None

    def __enter__(self) -> Self:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._found is not None:
            self._screen.say(self._showing.picture(self._found, None))
        self._screen.stop()

    def hear(self, state: RunState, event: Event) -> None:
        if is_lasting(event) and (line := line_of(state, event, brief=True)) is not None:
            self._screen.say(line)

    def see(self, found: Seen) -> bool:
        self._found = found
        return self._screen.is_alive()

    def _picture(self, lines: int) -> RenderableType | None:
        return None if self._found is None else self._showing.picture(self._found, lines)


class AsLines(Generic[Seen]):
    """Where it stands, what stands otherwise from then on, and a line a record of a run."""

    def __init__(self, showing: Showing[Seen]) -> None:
        self._showing = showing
        self._before: Seen | None = None
        self._is_heard = True

    def hear(self, state: RunState, event: Event) -> None:
        if (line := line_of(state, event)) is not None:
            self._say(line)

    def see(self, found: Seen) -> bool:
        for line in self._showing.news(self._before, found):
            self._say(line)
        self._before = found
        return self._is_heard

    def _say(self, line: str) -> None:
        self._is_heard = self._is_heard and write(f"{printable(line)}\n")


class AsJson(Generic[Seen]):
    """An object a line whenever there is something new."""

    def __init__(self, showing: Showing[Seen]) -> None:
        self._showing = showing
        self._known: object = None

    def hear(self, state: RunState, event: Event) -> None:
        """Its snapshot says it."""

    def see(self, found: Seen) -> bool:
        known, self._known = self._known, self._showing.key(found)
        if known == self._known:
            return True
        return write(f"{orjson.dumps(self._showing.document(found)).decode()}\n")


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
