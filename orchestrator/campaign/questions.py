"""What to ask before a campaign of trainings is paid, answered by what is known of it."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from budgets.accounts import MS_PER_HOUR
from budgets.table import table
from budgets.terms import Plan
from orchestrator.campaign.outlook import Outlook
from orchestrator.planning.basis import Basis
from orchestrator.planning.checklist import Item, checklist
from orchestrator.planning.facts import facts_of, needs
from orchestrator.planning.known_knobs import Known
from orchestrator.planning.room import room
from orchestrator.planning.times import Times


def questions(
    outlook: Outlook, plan: Plan, basis: Basis, root: Path, now: datetime
) -> tuple[Item, ...]:
    """The checklist of a campaign; `basis` is what is known of the configuration in common."""
    space, nothing = room(plan, root, basis.evaluation_bytes), Known((), (), ())
    facts = facts_of(plan, basis, None, Times(), lambda _: 0.0, space, nothing, now)
    seeds = len(outlook.terms.seeds)
    longest = max(condition.length for condition in outlook.terms.conditions)
    last = plan.limits.stretched(longest).reserve_ms / MS_PER_HOUR  # its whole limit
    hours = None if outlook.hours is None else outlook.hours + last
    device_hours = None if outlook.device_hours is None else outlook.device_hours + last
    own = replace(
        facts,
        smoke=seeds < 2,
        purpose=f"full: {seeds} seeds tell effects from luck",
        at_once=min(outlook.at_once, plan.devices.count),
        idle_share=_idle(outlook),
        hours=hours,
        needs=tuple(needs(plan, hours, device_hours, now)),
    )
    return checklist(own, searches=False)


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
