"""What is planned, and under which rules, in words."""

from collections.abc import Sequence

from budgets.calibration import chance_of_pause, failures_to_pause
from budgets.proxy.certificate import outlook
from budgets.table import table
from budgets.terms import Plan, Window
from budgets.tiers import INTENT
from budgets.words import duration
from orchestrator.planning.page import TierPage

SMALL_FAILURE_RATES = (0.01, 0.03)
"""Of evaluations whose knobs are not to blame: what a healthy system may have."""


def planned(plan: Plan) -> str:
    """What the tier is for, its shape and why it is that."""
    nominal = plan.nominal
    assert plan.tier is not None
    said = [
        f"{INTENT[plan.phase, plan.tier]}",
        f"As written {nominal.in_words} = {nominal.evaluations}",
    ]
    said += plan.reasons
    if plan.proxy is not None:
        said.append(_proxy(plan))
    return " ".join(f"{one}." for one in said)


def _proxy(plan: Plan) -> str:
    """What a proxy can save, and what it costs where it is not good enough."""
    assert plan.proxy is not None
    shape, length = plan.resolved, plan.proxy.varied.length
    paired, short = outlook(plan.proxy, shape.generations)
    compared, saved = paired * length, short * (1 - length)
    net, extra = (x / shape.generations for x in (saved - compared, compared))
    return (
        f"{plan.proxy.varied.label} takes {length:.0%} of an evaluation's time. Where it agrees "
        f"with the full one whenever they are compared, and the mean moves little, {short} of "
        f"{shape.generations} generations are short and {net:.0%} of the search's time is saved; "
        f"where it never does, comparing costs {extra:.0%} more"
    )


def bad_luck(tiers: Sequence[TierPage]) -> list[str]:
    """How often the crash rule pauses a run that nothing ails but a small rate of failures."""
    rates = (f">where {rate:.0%} of all fail" for rate in SMALL_FAILURE_RATES)
    columns = ("tier", ">a generation pauses it at", *rates)
    rows = (_bad_luck_row(tier.plan) for tier in tiers)
    return ["## How often luck alone would pause it", *table(columns, rows)]


def _bad_luck_row(plan: Plan) -> tuple[object, ...]:
    rule, each = plan.thresholds, plan.resolved.per_generation
    terms = (rule.crash_rate_pause, rule.crash_count_pause)
    count = failures_to_pause(each, *terms)
    if count is None:
        return plan.tier, "no number of failures", "never", "never"
    generations = plan.resolved.generations
    chances = (
        f"{chance_of_pause(each, rate, *terms, generations):.1%} of runs "
        f"({chance_of_pause(each, rate, *terms):.1%} of generations)"
        for rate in SMALL_FAILURE_RATES
    )
    return plan.tier, f"{count} of {each} failed", *chances


def terms(plan: Plan) -> str:
    search = ""
    if plan.search is not None:
        step = f"{plan.search.sigma0:.3g} of each knob's range"
        search = f"Search: {plan.search.method}, first step {step}. "
    return (
        f"{search}Reserved for each evaluation: {plan.limits.reserve_ms / 1000:.0f} device-seconds "
        f"(limit {plan.limits.wall_seconds:g} s and twice the grace of "
        f"{plan.limits.grace_seconds:g} s). {_caps(plan)}"
    )


def _caps(plan: Plan) -> str:
    caps = plan.caps
    named = (
        (caps.device_hours, "device-hours"),
        (caps.hours, "hours open"),
        (caps.cost, "of cost"),
    )
    given = [f"{cap:g} {unit}" for cap, unit in named if cap is not None]
    said = f"Never more than {', '.join(given)}." if given else "No cap but the evaluations."
    return said if caps.window is None else f"{said} {_until(caps.window)}"


def _until(window: Window) -> str:
    margin = duration(window.margin_seconds)
    if window.until is not None:
        return f"Evaluations are over {margin} before {window.until:%Y-%m-%d %H:%M %Z}."
    return f"Evaluations are over {margin} before {window.hours:g} h have passed since it began."
