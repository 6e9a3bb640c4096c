"""A run's pace in words."""

from datetime import datetime

from budgets.pace import Pace
from budgets.words import duration


def pace_line(found: Pace, now: datetime | None = None) -> str:
    """One line: on track or not, elapsed, left, when it ends, progress, evaluations an hour.

    Moments are in the time zone of `now`, by default the machine's.
    """
    parts = [f"{duration(3600 * found.elapsed_hours)} open"]
    if found.remaining_hours is not None:
        parts.append(f"{duration(3600 * found.remaining_hours)} left")
    if found.remaining_hours and found.eta is not None:
        parts.append(f"ends at {clock(found.eta, now)}")
    parts.append(f"{per_cent(found.progress)} done")
    if found.evals_per_hour is not None:
        parts.append(f"{found.evals_per_hour:,.0f} evaluations an hour")
    said = track(found)
    return f"{said[:1].upper()}{said[1:]}{': ' * bool(said)}{', '.join(parts)}."


def track(found: Pace) -> str:
    """`on track`, or `off track by 6 s (--window)`: what leaves too little; empty if unknown."""
    if found.slack_hours is None:
        return ""
    short = -3600 * found.slack_hours
    return f"off track by {duration(short)} ({found.binding})" if short >= 0.5 else "on track"


def per_cent(share: float) -> str:
    """All of it only when all of it is done."""
    return f"{min(int(100 * share), 99)}%" if share < 1 else "100%"


def clock(moment: datetime, now: datetime | None = None) -> str:
    """Its time of day; with the date, if that is not today's."""
    today = datetime.now().astimezone() if now is None else now
    local = moment.astimezone(today.tzinfo)
    return f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%Y-%m-%d %H:%M}"
