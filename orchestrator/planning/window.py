"""A window in which a run must be over, as people write it."""

import re
from datetime import datetime

from budgets.plan import MOST_HOURS, Window
from orchestrator.config import Budget

_DURATION = r"(\d+(?:\.\d+)?)([smhd])"
_UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}


def parse_hours(flag: str, text: str) -> float:
    """Hours from `90s`, `45m`, `12h` or `2d`. Raises ValueError, naming the flag."""
    found = re.fullmatch(_DURATION, text.strip(), re.ASCII)
    if found is None:
        raise ValueError(f"{flag}: expected a duration such as 45m, 12h or 2d, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def window_of(budget: Budget) -> Window | None:
    """Raises ValueError on what is no window."""
    return None if budget.window is None else parse_window(budget.window, budget.safety_margin)


def parse_window(text: str, safety_margin: str) -> Window:
    """A window from a duration, or from a moment (ISO 8601; local time unless it says its zone).

    Raises ValueError, naming the flag.
    """
    margin_seconds = 3600 * _at_most("budget.safety_margin", safety_margin)
    try:
        until = datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):  # the last day there is, in a zone where it is another
        return Window(hours=_hours_ahead(text), margin_seconds=margin_seconds)
    return Window(until=until, margin_seconds=margin_seconds)


def _hours_ahead(text: str) -> float:
    if re.fullmatch(_DURATION, text.strip(), re.ASCII) is None:
        raise ValueError(
            "--window: expected a duration such as 12h, or a moment such as "
            f"2026-11-27T18:00, got {text!r}"
        )
    hours = _at_most("--window", text)
    if not hours:
        raise ValueError(f"--window: expected more than no time, got {text!r}")
    return hours


def _at_most(flag: str, text: str) -> float:
    hours = parse_hours(flag, text)
    if hours > MOST_HOURS:
        raise ValueError(f"{flag}: expected at most {MOST_HOURS}h, got {text!r}")
    return hours


def refuse_the_past(window: Window | None, now: datetime) -> None:
    """Raises ValueError where no evaluation could be over in time, however short."""
    if window is None or window.until is None:
        return
    left = (window.until - now).total_seconds() - window.margin_seconds
    if left <= 0:
        raise ValueError(
            f"--window: expected a moment more than {window.margin_seconds:g} s ahead (the "
            f"budget.safety_margin), got {window.until.isoformat(timespec='minutes')}"
        )
