"""A snapshot some time later, as long as no record has come."""

from datetime import datetime, timedelta

from orchestrator.watch.snapshot import DeviceRow, Snapshot


def later(found: Snapshot, now: datetime) -> Snapshot:
    """The same with what has passed since, of a run that is being carried out."""
    passed = max(0.0, (now - found.now).total_seconds())
    rows = tuple(_later(row, passed) for row in found.devices)
    pace, hours = found.pace, passed / 3600
    elapsed = pace.elapsed_hours + hours if found.standing == "running" else pace.elapsed_hours
    update: dict[str, float | datetime] = {"elapsed_hours": elapsed}
    if pace.remaining_hours is not None and pace.eta is not None:
        remaining = max(0.0, pace.remaining_hours - min(hours, _gain_hours(found)))
        update |= {"remaining_hours": remaining, "eta": now + timedelta(hours=remaining)}
    return found.model_copy(
        update={"now": now, "devices": rows, "pace": pace.model_copy(update=update)}
    )


def _later(row: DeviceRow, passed: float) -> DeviceRow:
    if row.seconds is None:
        return row
    return row.model_copy(update={"seconds": row.seconds + passed})


def _gain_hours(found: Snapshot) -> float:
    """What can still be gained by what runs: no more than it is expected to take."""
    left = (
        row.expected_seconds - row.seconds
        for row in found.devices
        if row.expected_seconds is not None and row.seconds is not None
    )
    return max(0.0, max(left, default=0.0)) / 3600
