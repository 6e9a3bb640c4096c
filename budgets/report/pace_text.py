"""A run's pace in words."""

from datetime import datetime

from budgets.report.pace import Pace
from budgets.words import duration


def pace_line(found: Pace, now: datetime | None = None) -> str:
    """One line: elapsed, to go, when it is over, progress, evaluations an hour, on track or not.

    Moments are in the time zone of `now`, by default the machine's.
    """
    parts = [f"{duration(3600 * found.elapsed_hours)} open"]
    if found.remaining_hours is not None:
        parts.append(f"{duration(3600 * found.remaining_hours)} to go")
    if found.remaining_hours and found.eta is not None:
        parts.append(f"over at {clock(found.eta, now)}")
    parts.append(f"{found.progress:.0%} done")
    if found.evals_per_hour is not None:
        parts.append(f"{found.evals_per_hour:,.0f} evaluations an hour")
    return f"{track(found)}{', '.join(parts)}."


def track(found: Pace) -> str:
    """On track, or off it and by what; empty where nothing says."""
    if found.on_track is None:
        return ""
    if found.on_track:
        return "On track: "
    assert found.slack_hours is not None, "a limit leaves so much"
    short = duration(-3600 * found.slack_hours)
    if found.binding == "forecast":
        return f"Off track, {short} beyond what its plan and 15 % more allow: "
    return f"Off track, {short} too little ({found.binding}): "


def clock(moment: datetime, now: datetime | None = None) -> str:
    """Its time of day; with the date, if that is not today's."""
    today = datetime.now().astimezone() if now is None else now
    local = moment.astimezone(today.tzinfo)
    return f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%Y-%m-%d %H:%M}"
