"""What runs lose beside their evaluations, learned from earlier ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from budgets.terms import Devices
from orchestrator.planning.history import Entry, on_such

RECENT = 5
"""Runs that are asked what beside evaluations takes time."""


@dataclass(frozen=True)
class Lost:
    """What runs lose beside their evaluations, as earlier ones did."""

    startup_hours: float = 0.0  # of a session, until its first evaluation
    slowdown: float = 1.0  # actual over estimated wall clock, 1 at least
    runs: tuple[str, ...] = ()  # that say so


NOTHING_LOST = Lost()


def lost(history: Sequence[Entry], fingerprint: str, devices: Devices) -> Lost:
    """Medians over the last five runs on as many of these devices: start-up of any objective,
    slowdown of this one. Nothing where there is none."""
    alike = [e for e in history if on_such(e, devices) and e.devices == devices.count]
    own = [e for e in alike if e.fingerprint == fingerprint and e.accuracy][-RECENT:]
    starts = [e.startup_seconds for e in alike if e.evaluations][-RECENT:]
    slowdown = max(1.0, median(100 / (e.accuracy or 100) for e in own)) if own else 1.0
    startup_hours = median(starts) / 3600 if starts else 0.0
    return Lost(startup_hours, slowdown, tuple(e.run_id for e in own))
