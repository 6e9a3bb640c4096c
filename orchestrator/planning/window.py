"""A window in which a run must be over, as people write it."""

import re
from datetime import datetime

from budgets.terms import MOST_HOURS, Window

_UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}


def parse_hours(flag: str, text: str) -> float:
    """Hours from `90s`, `45m`, `12h` or `2d`. Raises ValueError, naming the flag."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip(), re.ASCII)
    if found is None:
        raise ValueError(f"{flag}: expected a duration such as 45m, 12h or 2d, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def parse_window(text: str, safety_margin: str) -> Window:
    """A window from a duration, or from a moment (ISO 8601; local time unless it says its zone).

    Raises ValueError, naming the flag.
    """
    margin_seconds = 3600 * parse_hours("--safety-margin", safety_margin)
    try:
        until = datetime.fromisoformat(text.strip()).astimezone()
    except ValueError:
        return Window(hours=_hours_ahead(text), margin_seconds=margin_seconds)
    return Window(until=until, margin_seconds=margin_seconds)


def _hours_ahead(text: str) -> float:
    try:
        hours = parse_hours("--window", text)
    except ValueError:
        raise ValueError(
            "--window: expected a duration such as 12h, or a moment such as "
            f"2026-11-27T18:00, got {text!r}"
        ) from None
    if not 0 < hours <= MOST_HOURS:
        raise ValueError(
            f"--window: expected more than 0 and at most {MOST_HOURS} hours, got {text!r}"
        )
    return hours
