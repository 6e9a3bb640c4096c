"""A plan's terms as the options that ask for them, left out where they are the default."""

from collections.abc import Iterator
from typing import Any

from budgets.terms import Plan, Thresholds
from orchestrator.config.document import as_assigned
from orchestrator.config.flags import FLAGS
from orchestrator.config.sections import Budget
from orchestrator.planning.plan import limits_for
from orchestrator.planning.request import RUNG_FACTOR, RUNG_SEEDS, VERDICT_SEEDS
from orchestrator.planning.window import parse_hours

UNITS = {"h": 1.0, "m": 60.0, "s": 3600.0, "d": 1 / 24}
"""Of a duration, as many as an hour has."""


def flags(*triples: tuple[str, Any, Any]) -> Iterator[str]:
    """The words of those options whose value is there, and other than the default."""
    for option, value, default in triples:
        if value is not None and value != default:
            yield from (option, text(value))


def keys(*pairs: tuple[str, Any]) -> Iterator[str]:
    """The options of these keys, whose value is there, and other than a file's own default."""
    return flags(*((FLAGS[key].name, value, FLAGS[key].default) for key, value in pairs))


def text(value: Any) -> str:
    """As an option takes it, and reads it back exactly."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def terms(plan: Plan) -> Iterator[str]:
    """What evaluations are begun with, and what all of them may take."""
    caps, calibration, window = plan.caps, plan.calibration, plan.caps.window
    yield from keys(
        ("evaluation.seed", plan.evaluation_seed),
        ("evaluation.assume_eval_seconds", calibration.assumed_seconds if calibration else None),
        ("budget.max_device_hours", caps.device_hours),
        ("budget.max_hours", caps.hours),
        ("budget.max_cost", caps.cost),
        ("budget.price_per_device_hour", plan.price_per_device_hour),
    )
    yield from _limits(plan)
    if window is not None:
        until = _span(window.hours or 0.0, 1.0)
        yield from ("--window", until if window.until is None else window.until.isoformat())
        margin = _span(window.margin_seconds, 3600.0)
        usual = 3600 * parse_hours("", Budget().safety_margin)
        yield from flags(("--safety-margin", margin, _span(usual, 3600.0)))


def _limits(plan: Plan) -> Iterator[str]:
    own, usual = plan.limits, limits_for(None, None, plan.devices, plan.calibration)
    yield from flags(("--limit-seconds", own.wall_seconds, usual.wall_seconds))
    stall = limits_for(own.wall_seconds, None, plan.devices, plan.calibration).stall_seconds
    yield from flags(("--stall-seconds", own.stall_seconds, stall))


def _span(amount: float, per_hour: float) -> str:
    """A duration as it may have been typed: in the unit in which it is read back exactly."""
    hours = amount / per_hour
    typed = [f"{text(round(hours * many, 6))}{unit}" for unit, many in UNITS.items()]
    exact = [one for one in typed if parse_hours("", one) * per_hour == amount]
    return next(iter(exact), f"{text(hours)}h")


def verdict(plan: Plan) -> Iterator[str]:
    """How the winner is compared with the baseline."""
    confirmation = plan.confirmation
    if confirmation is None:
        if plan.tier != "min" or plan.source is not None:
            yield from ("--confirm-seeds", "0")
        return
    yield from flags(("--confirm-seeds", confirmation.seeds, VERDICT_SEEDS))
    if (rung := confirmation.rung) is None:
        yield from ("--rung", "0")
    else:
        pairs = ("--rung", rung.factor, RUNG_FACTOR), ("--rung-seeds", rung.seeds, RUNG_SEEDS)
        yield from flags(*pairs)


def thresholds(own: Thresholds) -> Iterator[str]:
    """The limits of rules that are other than usual."""
    usual = Thresholds().model_dump()
    for name, value in own.model_dump().items():
        if value != usual[name]:
            yield from ("--set", f"thresholds.{name}={as_assigned(value)}")
