"""What to ask before a campaign of trainings is paid, answered by what is known of it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from budgets.accounts import MS_PER_HOUR
from budgets.table import table
from budgets.terms import Plan
from orchestrator.campaign.outlook import Outlook
from orchestrator.planning.basis import Basis
from orchestrator.planning.checklist import Item, Need, checklist
from orchestrator.planning.facts import facts_of, window_hours
from orchestrator.planning.known_knobs import Known
from orchestrator.planning.room import room


def questions(
    outlook: Outlook, plan: Plan, basis: Basis, root: Path, now: datetime
) -> tuple[Item, ...]:
    """The checklist of a campaign; `basis` is what is known of the configuration in common."""
    space, nothing = room(plan, root, basis.evaluation_bytes), Known((), (), ())
    facts = facts_of(plan, basis, None, space, nothing, now)
    seeds = len(outlook.terms.seeds)
    own = replace(
        facts,
        smoke=seeds < 2,
        purpose=f"full: {seeds} seeds tell effects from luck",
        at_once=min(outlook.at_once, plan.devices.count),
        idle_share=_idle(outlook),
        hours=outlook.hours,
        hours_are="by median times it ends",
        needs=tuple(_needs(outlook, plan, now)),
    )
    return checklist(own, searches=False)


def _idle(outlook: Outlook) -> float | None:
    """Of the time of all devices."""
    if not outlook.hours or outlook.device_hours is None:
        return None
    return max(0.0, 1 - outlook.device_hours / (outlook.devices.count * outlook.hours))


def _needs(outlook: Outlook, plan: Plan, now: datetime) -> Iterator[Need]:
    """The last attempt must find its whole reservation free: that of the longest condition."""
    longest = max(condition.length for condition in outlook.terms.conditions)
    caps, reserve = plan.caps, plan.limits.stretched(longest).reserve_ms / MS_PER_HOUR
    hours = None if outlook.hours is None else outlook.hours + reserve
    device = None if outlook.device_hours is None else outlook.device_hours + reserve
    cost = None if device is None else device * plan.price_per_device_hour
    for name, needed, allowed, unit in (
        ("--max-device-hours", device, caps.device_hours, "device-hours"),
        ("--max-hours", hours, caps.hours, "hours"),
        ("--max-cost", cost, caps.cost, ""),
        ("--window", hours, window_hours(plan, now), "hours"),
    ):
        if allowed is not None:
            yield Need(name, needed, allowed, unit)


def to_markdown(items: tuple[Item, ...]) -> list[str]:
    """A table of questions and answers."""
    rows = (("**fail**" if one.verdict == "fail" else one.verdict, one) for one in items)
    cells = ((one.question, verdict, one.why) for verdict, one in rows)
    return ["## Before you begin", "", *table(("", "", "because"), cells)]
