"""The questions to ask before anything is paid, each answered by what is known."""

from datetime import datetime
from typing import Literal, NamedTuple

from budgets.formatting import PROGRAM, duration, in_bytes, number
from budgets.plan import Plan
from orchestrator.plan.forecast import Forecast
from orchestrator.plan.history import Known
from orchestrator.plan.times import Disk, Times

Answer = Literal["pass", "fail", "unknown"]

CALIBRATE = f"{PROGRAM} calibrate with the same --objective and --set"

LEAST_SAMPLES = 3
MOST_DRIFT = 0.15
"""Of an evaluation's time, between the calibration and what ran since: as a report calls good."""

MOST_AGE_DAYS = 30.0
MOST_IDLE = 0.35
"""Of all devices' time, start-up included: with more, fewer devices would do."""

MOST_HITS = 0.05
"""Of evaluations at their limit: with more, the limit decides who is good."""


class Item(NamedTuple):
    """A question, and what is known of its answer."""

    question: str
    verdict: Answer
    why: str


def checklist(  # noqa: PLR0913, PLR0917 - one a thing that is known
    plan: Plan, times: Times, forecast: Forecast | None, space: Disk, known: Known, now: datetime
) -> tuple[Item, ...]:
    """Return every question about a search with its answer, in the order of asking.

    `now` dates the calibration and measures a deadline.
    """
    idle = None if forecast is None else forecast.idle_share
    return (
        purpose("full: it ends with a verdict", is_smoke_test=plan.confirmation is None),
        limit(plan.limits.wall_seconds, times),
        parallel(plan.resolved.per_generation, plan.devices.count, idle),
        pilot(times, now),
        wall_clock(None if forecast is None else forecast.hours_free, hours_allowed(plan, now)),
        knobs(known),
        caps(plan, None if forecast is None else forecast.device_hours_free),
        disk(space),
    )


def hours_allowed(plan: Plan, now: datetime) -> float | None:
    """Return when a cap or a deadline ends the run, should it begin now; None if nothing does.

    A window counts without its safety margin.
    """
    caps = plan.caps
    ends = [] if caps.hours is None else [caps.hours]
    if caps.window is not None:
        ends.append(max(0.0, caps.window.hours_from(now) - caps.window.margin_seconds / 3600))
    return min(ends, default=None)


def purpose(full: str, *, is_smoke_test: bool) -> Item:
    """Whether it decides anything."""
    said = "a smoke test: it decides nothing" if is_smoke_test else full
    return Item("Smoke test or full run?", "pass", said)


def limit(seconds: float, times: Times) -> Item:
    """Whether an evaluation's limit of so many seconds lets healthy ones end."""
    question, said = "Is the limit of an evaluation intentional?", f"{seconds:g} s"
    samples = () if times.calibration is None else times.calibration.samples
    if times.origin != "measured" or not samples or not times.attempts:
        return Item(question, "unknown", f"{said}; nothing was measured: {CALIBRATE}")
    longest = max(sample.seconds for sample in samples)
    said += f", {seconds / longest:.1f} x the longest measured; "
    hits = f"{times.timeouts} of {times.attempts} ended there"
    if seconds <= longest:
        return Item(question, "fail", f"{said}{hits}: healthy evaluations would be killed")
    if times.timeouts > MOST_HITS * times.attempts:
        return Item(question, "fail", f"{said}{hits}: raise it if they were healthy")
    return Item(question, "pass", f"{said}{hits}")


def parallel(at_once: int, devices: int, idle_share: float | None) -> Item:
    """Whether `at_once` evaluations keep so many devices busy."""
    question = "Is it as parallel as its devices?"
    waiting = f"{at_once} evaluations at a time on {devices}"
    if devices > at_once:
        return Item(question, "fail", f"{waiting}: {devices - at_once} never have one")
    if idle_share is None:
        idle = -at_once % devices
        idle_share = idle / (at_once + idle)
        said = f"{waiting} leave {idle} idle in the last round; no times"
    else:
        said = f"{waiting}, {idle_share:.0%} of the time idle"
    if idle_share > MOST_IDLE:
        return Item(question, "fail", f"{said}: fewer devices cost less and take little longer")
    return Item(question, "pass", said)


def pilot(times: Times, now: datetime) -> Item:
    """Whether the time of an evaluation was measured, lately, and still holds."""
    question = "Does a pilot confirm the time of an evaluation?"
    if times.calibration is None:
        return Item(question, "unknown", f"nothing was measured: {CALIBRATE}")
    if times.origin != "measured":
        why = "stated, not measured" if times.origin == "assumed" else "an estimate"
        return Item(question, "fail", f"{why}: {CALIBRATE}")
    samples, days = len(times.calibration.samples), 0.0
    said = f"measured on {samples} seeds"
    if times.measured_at is not None:
        days = (now - times.measured_at).total_seconds() / 86_400
        said += f", {_ago(days)}"
    if samples < LEAST_SAMPLES:
        return Item(question, "fail", f"{said}: {LEAST_SAMPLES} are the least that spread")
    if times.latest is not None and times.drift is not None:
        said += f"; {times.latest.run_id} took {times.drift:.2f} x that"
        if abs(times.drift - 1) > MOST_DRIFT:
            return Item(question, "fail", f"{said}: {CALIBRATE} --again --reason WHY")
    elif days > MOST_AGE_DAYS:
        return Item(question, "unknown", f"{said}, and nothing ran since")
    return Item(question, "pass", said)


def _ago(days: float) -> str:
    if days < 1 / 24:
        return "within the last hour"
    return f"{24 * days:.0f} hours ago" if days < 2 else f"{days:.0f} days ago"


def wall_clock(hours: float | None, allowed: float | None) -> Item:
    """Whether the hours that must be free are allowed."""
    question = "Is the wall clock acceptable?"
    if hours is None:
        return Item(question, "unknown", f"nothing was measured: {CALIBRATE}")
    needed = f"{duration(3600 * hours)} must be free"
    if allowed is None:
        why = f"{needed}; say how long it may take: --window or --max-hours"
        return Item(question, "unknown", why)
    there = f"{needed}, {duration(3600 * allowed)} are there"
    return Item(question, "pass" if hours <= allowed else "fail", there)


def knobs(known: Known) -> Item:
    """Whether every knob was shown to move the score."""
    question = "Are the knobs shown to be alive?"
    count = len(known.alive) + len(known.dead) + len(known.neither)
    alive = f"{len(known.alive)} of {count} moved the score when checked"
    if len(known.neither) == count:
        why = f"none was checked: {PROGRAM} check knobs with the same --objective and --set"
        return Item(question, "unknown", why)
    if known.dead:
        return Item(question, "fail", f"{alive}; {', '.join(known.dead)} did not")
    if known.neither:
        return Item(question, "unknown", f"{alive}: {PROGRAM} check knobs tries the others")
    return Item(question, "pass", alive)


def caps(plan: Plan, device_hours: float | None) -> Item:
    """Whether so many device-hours fit under the caps on device time and cost."""
    question = "Does it fit under the caps on device time and cost?"
    price, planned = plan.price_per_device_hour, plan.caps
    allowed = {
        "--max-device-hours": planned.device_hours,
        "--max-cost": None if planned.cost is None else planned.cost / price,
    }
    given = {name: hours for name, hours in allowed.items() if hours is not None}
    if not given:
        return Item(question, "pass", "there is none but the tier's evaluations")
    needed = number(device_hours, 3, "?")
    why = f"{needed} device-hours must be free; " + ", ".join(
        f"{name} allows {hours:.3g}" for name, hours in given.items()
    )
    if device_hours is None:
        return Item(question, "unknown", why)
    return Item(question, "pass" if device_hours <= min(given.values()) else "fail", why)


def disk(space: Disk) -> Item:
    """Whether the disk holds it."""
    question = "Is there room on the disk?"
    if space.free is None:
        return Item(question, "unknown", "nobody can tell what is free there")
    assumed = "" if space.measured else " (assumed)"
    said = f"{in_bytes(space.needed)}{assumed} of {in_bytes(space.free)} free"
    return Item(question, "pass" if space.suffices else "fail", said)
