"""The checklist before anything is paid for: each question with pass, fail or unknown."""

from datetime import datetime
from typing import Literal, NamedTuple

from budgets.formatting import PROGRAM, duration, number
from budgets.plan import Caps, Plan
from orchestrator.plan.forecast import Forecast
from orchestrator.plan.times import Known, Times

Answer = Literal["pass", "fail", "unknown"]

UNMEASURED = f"not measured here: {PROGRAM} calibrate with the same --objective and --set"

LEAST_SAMPLES = 3
MOST_IDLE = 0.35  # of the devices' time in a generation
MOST_TIMEOUTS = 0.05  # of evaluations: with more, the limit decides the ranking


class Item(NamedTuple):
    """A question and its answer."""

    question: str
    verdict: Answer
    why: str


def checklist(  # noqa: PLR0913, PLR0917 - what the answers rest on
    plan: Plan,
    times: Times,
    forecast: Forecast | None,
    now: datetime,
    at_once: int,
    knobs: Known | None = None,
) -> tuple[Item, ...]:
    """Return every question with its answer, in a fixed order.

    `at_once` evaluations run. Without `knobs` the run searches none.
    """
    items = [
        Item("Smoke test or full run?", "pass", _purpose(plan)),
        Item("Is the limit of an evaluation intentional?", *_limit(plan, times)),
        Item("Is it as parallel as its devices?", *_parallel(plan, at_once)),
        Item("Does a pilot confirm the time of an evaluation?", *_pilot(times)),
        Item("Is the wall clock acceptable?", *_wall_clock(plan, forecast, now)),
        Item("Does it fit under the caps on device time and cost?", *_caps(plan, forecast)),
    ]
    if knobs is not None:
        items.append(Item("Are the knobs shown to be alive?", *_knobs(knobs)))
    return tuple(items)


def _purpose(plan: Plan) -> str:
    if plan.campaign is not None and len(plan.campaign.seeds) > 1:
        return f"full: {len(plan.campaign.seeds)} seeds tell effects from chance"
    if plan.confirmation is not None:
        return "full: it ends with a verdict"
    return "a smoke test: it decides nothing"


def _limit(plan: Plan, times: Times) -> tuple[Answer, str]:
    seconds = plan.limits.wall_seconds
    if times.origin != "measured" or times.calibration is None:
        return "unknown", f"{seconds:g} s; {UNMEASURED}"
    longest = max(sample.seconds for sample in times.calibration.samples)
    said = (
        f"{seconds:g} s, {seconds / longest:.1f} x the longest measured; {times.timeouts} of "
        f"{times.attempts} were killed at it"
    )
    if seconds <= longest:
        return "fail", f"{said}: it would kill healthy evaluations"
    if times.timeouts > MOST_TIMEOUTS * times.attempts:
        return "fail", f"{said}: raise it if they were healthy"
    return "pass", said


def _parallel(plan: Plan, devices: int) -> tuple[Answer, str]:
    batch = plan.resolved.per_generation
    idle = -batch % devices / (batch + -batch % devices)  # in the last round of a generation
    said = f"{batch} evaluations at a time on {devices}, {idle:.0%} of the time idle"
    if idle > MOST_IDLE:
        return "fail", f"{said}: fewer devices cost less and take little longer"
    return "pass", said


def _pilot(times: Times) -> tuple[Answer, str]:
    if times.origin == "none":
        return "unknown", UNMEASURED
    if times.origin != "measured" or times.calibration is None:
        why = "scaled from elsewhere" if times.origin == "prior" else "stated"
        return "fail", f"the time is {why}; {UNMEASURED}"
    samples = len(times.calibration.samples)
    if samples < LEAST_SAMPLES:
        return "fail", f"measured on {samples} seeds: at least {LEAST_SAMPLES} are needed"
    return "pass", f"measured on {samples} seeds"


def hours_allowed(caps: Caps, now: datetime) -> float | None:
    """Return the hours until a cap or a deadline ends a run that begins now; None without one.

    A window counts without its safety margin.
    """
    ends = [] if caps.hours is None else [caps.hours]
    if caps.window is not None:
        ends.append(max(0.0, caps.window.hours_from(now) - caps.window.margin_seconds / 3600))
    return min(ends, default=None)


def _wall_clock(plan: Plan, forecast: Forecast | None, now: datetime) -> tuple[Answer, str]:
    if forecast is None:
        return "unknown", UNMEASURED
    hours, allowed = forecast.hours_free, hours_allowed(plan.caps, now)
    said = f"{duration(3600 * hours)} must be free"
    if allowed is None:
        return "unknown", f"{said}; give a limit: --window or --max-hours"
    return "pass" if hours <= allowed else "fail", f"{said} of {duration(3600 * allowed)}"


def _caps(plan: Plan, forecast: Forecast | None) -> tuple[Answer, str]:
    given, caps = dict[str, float](), plan.caps
    if caps.device_hours is not None:
        given["--max-device-hours"] = caps.device_hours
    if caps.cost is not None:
        given["--max-cost"] = caps.cost / plan.price_per_device_hour
    if not given:
        return "pass", "there are none"
    hours = None if forecast is None else forecast.device_hours_free
    why = f"{number(hours, 3, '?')} device-hours must be free; " + ", ".join(
        f"{name} allows {most:.3g}" for name, most in given.items()
    )
    if hours is None:
        return "unknown", why
    return "pass" if hours <= min(given.values()) else "fail", why


def _knobs(known: Known) -> tuple[Answer, str]:
    count, check = (
        sum(map(len, known)),
        f"{PROGRAM} check knobs with the same --objective and --set",
    )
    said = f"{len(known.alive)} of {count} moved the score when checked"
    if known.dead:
        return "fail", f"{said}; {', '.join(known.dead)} did not"
    return ("unknown", f"{said}: {check}") if known.neither else ("pass", said)
