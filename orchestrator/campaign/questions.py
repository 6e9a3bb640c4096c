"""What to ask before a campaign of trainings is paid, answered by what is known of it."""

from datetime import datetime
from pathlib import Path

from budgets.accounts import MS_PER_HOUR
from budgets.table import table
from budgets.terms import Plan
from orchestrator.campaign.outlook import Outlook
from orchestrator.planning import checklist
from orchestrator.planning.checklist import Item
from orchestrator.planning.room import room
from orchestrator.planning.times import Times


def questions(
    outlook: Outlook, plan: Plan, times: Times, root: Path, now: datetime
) -> tuple[Item, ...]:
    """The checklist of a campaign; `times` is what is known of the configuration in common."""
    seeds = len(outlook.terms.seeds)
    longest = max(condition.length for condition in outlook.terms.conditions)
    last = plan.limits.stretched(longest).reserve_ms / MS_PER_HOUR  # its whole limit
    hours = None if outlook.hours is None else outlook.hours + last
    device_hours = None if outlook.device_hours is None else outlook.device_hours + last
    at_once = min(outlook.at_once, plan.devices.count)
    full = f"full: {seeds} seeds tell effects from luck"
    return (
        checklist.purpose(full, is_smoke_test=seeds < 2),
        checklist.limit(plan.limits.wall_seconds, times),
        checklist.parallel(at_once, plan.devices.count, _idle(outlook)),
        checklist.pilot(times, now),
        checklist.wall_clock(hours, checklist.hours_allowed(plan, now)),
        checklist.caps(plan, device_hours),
        checklist.disk(room(plan, root, times.evaluation_bytes)),
    )


def _idle(outlook: Outlook) -> float | None:
    """Of the time of all devices."""
    if not outlook.hours or outlook.device_hours is None:
        return None
    return max(0.0, 1 - outlook.device_hours / (outlook.devices.count * outlook.hours))


def to_markdown(items: tuple[Item, ...]) -> list[str]:
    """A table of questions and answers."""
    rows = (("**fail**" if one.verdict == "fail" else one.verdict, one) for one in items)
    cells = ((one.question, verdict, one.why) for verdict, one in rows)
    return ["## Before you begin", "", *table(("", "", "because"), cells)]
