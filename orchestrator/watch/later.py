"""A snapshot some time later, as long as no record has come."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nlargest

from budgets.pace import Pace
from orchestrator.watch.snapshot import DeviceRow, Snapshot

MOST_ROWS = 64
"""Devices that get older: of more than a terminal shows, those nearest to their end."""


def later(found: Snapshot, now: datetime) -> Snapshot:
    """The same with what has passed since, of a run that is being carried out."""
    passed = max(0.0, (now - found.now).total_seconds())
    older = {row.slot: _later(row, passed) for row in _shown(found.devices)}
    rows = tuple(older.get(row.slot, row) for row in found.devices)
    hours = passed / 3600 if found.standing == "running" else 0.0
    pace = moved(found.pace, hours, _gain_hours(found), now)
    return found.model_copy(update={"now": now, "devices": rows, "pace": pace})


def moved(pace: Pace, hours: float, most: float, now: datetime) -> Pace:
    """The pace so many hours later: what runs has come nearer to its end, by so many at most."""
    update: dict[str, float | datetime] = {"elapsed_hours": pace.elapsed_hours + hours}
    if pace.remaining_hours is not None:
        remaining = max(0.0, pace.remaining_hours - min(hours, most))
        update |= {"remaining_hours": remaining, "eta": now + timedelta(hours=remaining)}
    return pace.model_copy(update=update)


def _shown(rows: tuple[DeviceRow, ...]) -> Iterable[DeviceRow]:
    return rows if len(rows) <= MOST_ROWS else nlargest(MOST_ROWS, rows, key=lambda row: row.share)


def _later(row: DeviceRow, passed: float) -> DeviceRow:
    if row.seconds is None:
        return row
    return replace(row, seconds=row.seconds + passed)


def _gain_hours(found: Snapshot) -> float:
    """What can still be gained by what runs: no more than it is expected to take."""
    left = (
        row.expected_seconds - row.seconds
        for row in found.devices
        if row.expected_seconds is not None and row.seconds is not None
    )
    return max(0.0, max(left, default=0.0)) / 3600
