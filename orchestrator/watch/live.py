"""What a person sees of the run that this process carries out."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.console import Console, RenderableType

from budgets.events import Concluded, Event, Opened
from budgets.plain import printable
from budgets.state import RunState
from orchestrator.running.run import Run
from orchestrator.running.signals import at_once
from orchestrator.watch.laid_out import LaidOut
from orchestrator.watch.later import later
from orchestrator.watch.lines import is_lasting, line_of
from orchestrator.watch.listener import silence
from orchestrator.watch.noted import Noted
from orchestrator.watch.screen import Screen, can_paint
from orchestrator.watch.signs import HEARTBEATS, Signs
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.stray import caught
from orchestrator.watch.take import snapshot
from orchestrator.watch.tidy import tidy
from orchestrator.watch.view import View

TAKE_SECONDS = 1.0
"""How often a snapshot is taken at most, however fast evaluations come ..."""

TAKE_SHARE = 0.002
"""... and what share of a core that may take, however large the run is."""

ABOVE = 6
"""Lines of the terminal that are left to what is said."""

MOST_UNNOTED = 1000
"""Records that wait for somebody to look."""


@dataclass
class Live:
    """Follows the records of one run after another. Use as a context manager.

    On a terminal a view of the run stays below the lines, which then tell only what lasts;
    elsewhere every record has its line.
    """

    console: Console
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    _screen: Screen | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _noted: Noted = field(default_factory=Noted)
    _shown: tuple[Snapshot, Signs] | None = None
    _unnoted: list[tuple[Event, datetime]] = field(default_factory=list)  # since the last snapshot
    _due: float = -math.inf  # the next snapshot

    def __enter__(self) -> "Live":
        if can_paint(self.console):
            screen = Screen(self.console, self._picture, ABOVE)
            screen.start()
            self._screen = screen
            self._stack.callback(screen.stop)
            self._stack.enter_context(caught(self.say))
            self._stack.enter_context(tidy(self.console))
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()

    def rest(self) -> None:
        """Take the view away, for good: what is printed from now on is the command's own."""
        self._stack.close()
        self._screen = None

    def say(self, text: str) -> None:
        """A line."""
        self._print(text)

    def announce(self, text: str) -> None:
        """The same from a signal's handler, whatever it interrupts."""
        say = at_once if self._screen is None else self.say
        say(text)

    def markdown(self, text: str) -> None:
        """A whole report, laid out."""
        self._print(LaidOut(text))

    def _print(self, content: RenderableType) -> None:
        if self._screen is not None and self._screen.is_alive():
            self._screen.say(content)
            return
        try:
            if isinstance(content, str):
                text = printable(content)
                self.console.print(text, highlight=False, markup=False, soft_wrap=True)
            else:
                self.console.print(content, crop=False)
        except OSError:  # a terminal that went away
            silence(self.console)

    def observe(self, state: RunState, event: Event) -> None:
        """One record was written."""
        is_painted = self._screen is not None
        if is_painted:
            self._note(state, event)
        if is_painted and not is_lasting(event):
            return
        if (line := line_of(state, event, brief=is_painted)) is not None:
            self.say(line)

    def _note(self, state: RunState, event: Event) -> None:
        """What is noted all at once costs a fraction of what it costs one by one."""
        if isinstance(event, Opened):
            self._noted, self._shown, self._due = Noted(), None, -math.inf
            self._unnoted.clear()
        self._unnoted.append((event, self.now()))
        if len(self._unnoted) > MOST_UNNOTED:
            self._catch_up(state)
        if isinstance(event, Concluded):
            self._shown = None

    def _catch_up(self, state: RunState) -> None:
        for event, at in self._unnoted:
            self._noted.note(state, event, at)
        self._unnoted.clear()

    def look(self, run: Run) -> None:
        """The run waits: what has changed can be shown. To be called whenever it does."""
        if self._screen is None or not self._unnoted or self.monotonic() < self._due:
            return
        began = time.thread_time()
        self._catch_up(run.state)
        found = snapshot(run.state, self._noted, self.now())
        signs = self._shown[1] if self._shown is not None else Signs(run.directory)
        self._shown = found, signs
        cost = time.thread_time() - began
        self._due = self.monotonic() + max(TAKE_SECONDS, cost / TAKE_SHARE)

    def _picture(self, lines: int) -> RenderableType | None:
        """The view as of now, in the screen's own thread: from what was handed over alone."""
        if (shown := self._shown) is None:
            return None
        found, signs = shown
        return View(signs.seen(later(found, self.now()), HEARTBEATS), lines)
