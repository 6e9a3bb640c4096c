"""What a plan of a search knows of itself, for the checklist."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from budgets.terms import Plan
from orchestrator.planning.basis import Basis
from orchestrator.planning.checklist import Facts, Need
from orchestrator.planning.known_knobs import Known
from orchestrator.planning.needs import (
    Spread,
    device_hours_that_must_be_free,
    hours_that_must_be_free,
)
from orchestrator.planning.room import Room
from orchestrator.planning.times import Times

if TYPE_CHECKING:
    from orchestrator.planning.barrier import Simulated  # imports numpy


def facts_of(  # noqa: PLR0913, PLR0917 - one a thing that is known
    plan: Plan,
    basis: Basis,
    simulated: "Simulated | None",
    times: Times,
    spread: Spread,
    space: Room,
    known: Known,
    now: datetime,
) -> Facts:
    """The facts of one tier's plan; `now` dates the calibration and measures a deadline.

    Its hours and device-hours are what the rules of a run, and `plan --fit`, ask to be free.
    """
    measured = basis.calibration
    seconds = [s.seconds for s in measured.samples] if measured is not None else []
    hours = hours_that_must_be_free(plan, times, spread)
    device_hours = None
    if simulated is not None:
        device_hours = device_hours_that_must_be_free(plan, simulated.device_hours_p90)
    age = None if basis.measured_at is None else (now - basis.measured_at).total_seconds() / 86_400
    return Facts(
        smoke=plan.confirmation is None,
        limit_seconds=plan.limits.wall_seconds,
        longest_seconds=max(seconds, default=None),
        attempts=basis.attempts,
        timeouts=basis.timeouts,
        devices=plan.devices.count,
        at_once=plan.resolved.per_generation,
        idle_share=None if simulated is None else simulated.idle_share,
        origin=basis.origin,
        samples=len(seconds),
        age_days=age,
        drift=basis.drift,
        drifted="" if basis.latest is None else basis.latest.run_id,
        hours=hours,
        hours_allowed=hours_allowed(plan, now),
        alive=known.alive,
        dead=known.dead,
        untried=known.neither,
        needs=tuple(needs(plan, hours, device_hours, now)),
        disk_needed=space.needed,
        disk_free=space.free,
        disk_measured=space.measured,
    )


def hours_allowed(plan: Plan, now: datetime) -> float | None:
    """Until a cap or a deadline ends the run, should it begin now; None if nothing does."""
    ends = [hours for hours in (plan.caps.hours, window_hours(plan, now)) if hours is not None]
    return min(ends, default=None)


def window_hours(plan: Plan, now: datetime) -> float | None:
    """What a window leaves for evaluations, less its margin; 0 where it is over."""
    window = plan.caps.window
    if window is None:
        return None
    return max(0.0, window.hours_from(now) - window.margin_seconds / 3600)


def needs(
    plan: Plan, hours: float | None, device_hours: float | None, now: datetime
) -> Iterator[Need]:
    """What each cap has to hold, of what must be free."""
    caps = plan.caps
    cost = None if device_hours is None else device_hours * plan.price_per_device_hour
    for name, needed, allowed, unit in (
        ("--max-device-hours", device_hours, caps.device_hours, "device-hours"),
        ("--max-hours", hours, caps.hours, "hours"),
        ("--max-cost", cost, caps.cost, ""),
        ("--window", hours, window_hours(plan, now), "hours"),
    ):
        if allowed is not None:
            yield Need(name, needed, allowed, unit)
