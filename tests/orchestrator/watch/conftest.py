"""Runs told in memory and watched, and a terminal that remembers what is on it."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from budgets.events import Event, Owner, PanelAsked
from budgets.state import RunState
from budgets.terms import Arm, Plan
from orchestrator.execution.processes import this_owner
from orchestrator.watch.noted import Noted
from orchestrator.watch.screen import Page
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.take import snapshot
from orchestrator.watch.view import View
from tests.budgets.conftest import OPENED, Outcome, Story, reserved, settled, small_plan

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
ME = this_owner()
NOBODY = Owner(boot_id=ME.boot_id, pid=2**22, start_ticks=1)  # of a process that is gone


class Watched(Story):
    """A run that this process carries out and watches; `at` turns its clock."""

    def __init__(self, plan: Plan | None = None, workers: int = 2, owner: Owner = ME) -> None:
        self.noted, self.workers, self.owner = Noted(), workers, owner
        super().__init__(plan or small_plan())

    def say(self, *events: Event) -> RunState:
        for event in events:
            super().say(event)
            self.noted.note(self.state, event, self.now)
        return self.state

    def open(self) -> RunState:
        self.elapsed_ms = 0
        return self.say(replace(OPENED, workers=self.workers, owner=self.owner))

    @property
    def now(self) -> datetime:
        return BEGAN + timedelta(milliseconds=self.elapsed_ms)

    def at(self, seconds: float) -> "Watched":
        self.elapsed_ms = round(1000 * seconds)
        return self

    def end(self, candidate: int, outcome: Outcome = 1.0, **fields: Any) -> None:
        """Settle the attempt in flight."""
        self.say(settled(self.flying(candidate), outcome, **fields))

    def flying(self, candidate: int, seed: int = 5) -> Any:
        return self.current.tries[candidate, seed][-1].reserved

    def snapshot(self, seconds: float | None = None) -> Snapshot:
        """As of that moment, or of the last record."""
        now = self.now if seconds is None else BEGAN + timedelta(seconds=seconds)
        return snapshot(self.state, self.noted, now)

    def panel(self, arms: dict[str, tuple[int, ...]], name: Any = "finalists") -> None:
        """Ask for a panel of these arms on these seeds."""
        own = tuple(Arm(name=arm, point=(0.5, 0.5)) for arm in arms)
        self.say(PanelAsked(panel=name, arms=own, seeds=tuple(arms.values())))

    def compare_one(self, arm: int, seed: int, outcome: Outcome, name: Any = "finalists") -> None:
        reservation = reserved(arm, panel=name, seed=seed)
        self.say(reservation, settled(reservation, outcome, panel=name))


def shown(found: Snapshot, width: int = 100, height: int = 1000, **options: Any) -> list[str]:
    """The lines of a view, without styles unless a terminal is asked for."""
    page = Page(options.pop("encoding", "utf-8"))
    Console(file=page, width=width, height=height, **options).print(View(found, height))
    return page.take().split("\n")[:-1]


class Terminal(io.StringIO):
    """What a person sees of what is written to it: a screen that wraps, scrolls and is resized.

    It knows what the view says to terminals, and no more.
    """

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        super().__init__()
        self.columns, self.lines = columns, lines
        self.rows: list[str] = [""]
        self.row = self.column = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        rest = text
        while rest:
            rest = self._sequence(rest) if rest.startswith("\x1b[") else self._character(rest)
        return len(text)

    def _sequence(self, text: str) -> str:
        end = next(place for place in range(2, len(text)) if text[place].isalpha())
        argument, what = text[2:end], text[end]
        if what == "A":
            self.row = max(self._top, self.row - int(argument or 1))
        elif what == "K":
            self.rows[self.row] = self.rows[self.row][: self.column]
        elif what == "J":
            self.rows[self.row] = self.rows[self.row][: self.column]
            del self.rows[self.row + 1 :]
        else:
            assert what == "m", f"an unknown sequence: {text[: end + 1]!r}"
        return text[end + 1 :]

    def _character(self, text: str) -> str:
        one = text[0]
        if one == "\r":
            self.column = 0
        elif one == "\n":
            self._down()
        else:
            if self.column == self.columns:
                self._down()
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + one + row[self.column + 1 :]
            self.column += 1
        return text[1:]

    def _down(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append("")

    @property
    def _top(self) -> int:
        """The first row that is on the screen: nobody gets to those that have scrolled away."""
        return max(0, len(self.rows) - self.lines)

    def seen(self) -> list[str]:
        """All that was ever written and not overwritten, with what has scrolled away."""
        return [row.rstrip() for row in self.rows]

    def resize(self, columns: int) -> None:
        """As terminals do that fold long rows anew."""
        cursor = (self.row, self.column)
        self.columns, self.row = columns, 0
        folded: list[str] = []
        for number, row in enumerate(self.rows):
            if number == cursor[0]:
                self.row = len(folded) + cursor[1] // columns
            folded += [row[at : at + columns] for at in range(0, max(1, len(row)), columns)]
        self.rows, self.column = folded, cursor[1] % columns


@pytest.fixture
def watched() -> Watched:
    """A run of 2 x 4 evaluations on two devices, opened and not begun."""
    return Watched()
