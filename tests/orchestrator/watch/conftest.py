"""Runs told in memory and watched."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from budgets.events import Event, Owner, PanelAsked
from budgets.state import RunState
from budgets.terms import Arm, Plan
from orchestrator.execution.processes import this_owner
from orchestrator.watch.noted import Noted
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.take import snapshot
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


@pytest.fixture
def watched() -> Watched:
    """A run of 2 x 4 evaluations on two devices, opened and not begun."""
    return Watched()
