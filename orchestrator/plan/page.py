"""The page of a plan: ten lines on each tier, or all that they rest on. Without side effects."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import ceil, sqrt
from pathlib import Path
from statistics import median
from typing import Any, get_args

from budgets.formatting import PROGRAM, duration, plain, table
from budgets.plan import Devices, Plan, Tier
from budgets.stats import power_of
from budgets.tiers import INTENT
from objectives.api import Objective, SetupError
from objectives.registry import kind
from orchestrator.config import Config
from orchestrator.plan.checks import Item, checklist
from orchestrator.plan.differences import beginning
from orchestrator.plan.forecast import Forecast, detectable_gain, forecast_of
from orchestrator.plan.resolve import Succession, search_plan
from orchestrator.plan.times import Times, known_knobs, times_here

VERBOSE = "`--verbose` says why, and shows what the figures rest on."


@dataclass(frozen=True)
class TierPage:
    """One tier: its plan, its price, its detectable gain and its checklist."""

    plan: Plan
    forecast: Forecast | None  # None: no times are known
    detectable: float | None  # None: no comparison, or no known noise
    items: tuple[Item, ...]

    @property
    def verdict_evaluations(self) -> int:
        """Evaluations beside the search's, at most, without the long run after a Go."""
        sizes = {} if self.plan.confirmation is None else self.plan.confirmation.sizes()
        return sum(count for name, (count, _) in sizes.items() if name != "long_run")

    @property
    def cost(self) -> float | None:
        """P50; None without times or a price."""
        price = self.plan.price_per_device_hour
        return self.forecast.device_hours_p50 * price if self.forecast and price else None

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "plan": self.plan.model_dump(mode="json"),
            "search": _by_formula(self.plan),
            "forecast": None if self.forecast is None else asdict(self.forecast),
            "cost": self.cost,
            "detectable_gain": self.detectable,
            "checklist": [item._asdict() for item in self.items],
        }


def _by_formula(plan: Plan) -> dict[str, float] | None:
    """The search alone at the median time: E t / W, and with the barrier G ceil(P S / W) t."""
    if plan.calibration is None:
        return None
    shape, devices, seconds = plan.resolved, plan.devices.count, plan.calibration.median_seconds
    rounds = shape.generations * ceil(shape.per_generation / devices)
    return {
        "evals_per_hour": 3600 / seconds,  # of one device
        "device_hours": shape.evaluations * seconds / 3600,
        "ideal_hours": shape.evaluations * seconds / 3600 / devices,
        "barrier_hours": rounds * seconds / 3600,
    }


@dataclass(frozen=True)
class Page:
    """The tiers side by side, and what their figures rest on."""

    objective: Objective
    times: Times
    tiers: tuple[TierPage, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "times": {"origin": self.times.origin, "prior": self.times.prior},
            "evaluation": _evaluation(self.objective, self.times),
            "tiers": [tier.as_dict() for tier in self.tiers],
        }


def _evaluation(objective: Objective, times: Times) -> dict[str, Any] | None:
    """Steps, tokens and throughput of an evaluation; None if they are not known."""
    try:
        work = objective.flops()
    except SetupError:  # it depends on data that is not there
        return None
    if work is None or times.calibration is None:
        return None
    seconds, tokens = times.calibration.median_seconds, work.tokens
    figures = {"tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds}
    return {"steps": work.steps, **figures}


def page_of(config: Config, devices: Devices, succession: Succession | None = None) -> Page:
    """Return the page of a search: of all tiers unless the configuration names one.

    Raises ValueError on a plan that is impossible.
    """
    root, objective = Path(config.runs_dir), config.tuned
    times = times_here(root, objective, devices, config.evaluation.assume_eval_seconds)
    known = known_knobs(root, objective, devices.kind)
    now, pages = datetime.now(UTC), list[TierPage]()
    for tier in get_args(Tier) if config.search.tier is None else (config.search.tier,):
        own = config.having({"search.tier": tier})
        plan = search_plan(own, devices, times.calibration, succession)
        forecast = forecast_of(plan, times)
        items = checklist(plan, times, forecast, now, devices.count, known)
        pages.append(TierPage(plan, forecast, detectable_gain(plan), items))
    return Page(objective, times, tuple(pages))


def page_text(page: Page, *, in_full: bool = False) -> str:
    """Return the tiers side by side and what is not in order, or `in_full` everything."""
    plan = page.tiers[0].plan
    devices, name = plan.devices, kind(plan.objective)
    parts = [
        [f"# {plan.phase} of {plain(name)} on {devices.count} x {devices.name}"],
        _tiers(page),
        [in_short(page.times)],
        [beginning(plan)],
        *(_in_full(page) if in_full else (_objections(page), [VERBOSE])),
    ]
    return "\n\n".join("\n".join(part) for part in parts if any(part)) + "\n"


def _tiers(page: Page) -> list[str]:
    """The main table; evaluations are those of the search + those of the verdict."""
    is_priced, rows = bool(page.tiers[0].plan.price_per_device_hour), []
    for tier in page.tiers:
        shape, beside, took = tier.plan.resolved, tier.verdict_evaluations, tier.forecast
        count = f"{shape.evaluations}{f' + {beside}' if beside else ''}"
        times: tuple[str, ...] = ("?",) * (3 + is_priced)
        if took is not None:
            hours = (duration(3600 * took.hours_p50), duration(3600 * took.hours_p90))
            cost = (f"{tier.cost:.2f}",) if is_priced else ()
            times = (*hours, f"{took.device_hours_p50:.3g}", *cost)
        gain = "?" if tier.detectable is None else f"{tier.detectable:.2%}"
        gain = gain if tier.plan.confirmation is not None else "no verdict"
        rows.append((tier.plan.tier, shape.in_words, count, *times, gain))
    priced = (">cost",) if is_priced else ()
    columns = (">evaluations", ">p50", ">p90", ">device-hours", *priced, ">detectable gain")
    return table(("tier", "P x G x S", *columns), rows)


def _objections(page: Page) -> list[str]:
    """The checklist's answers that are not pass."""
    answers = [(item, which) for item, which in _answers(page.tiers) if item.verdict != "pass"]
    lines = [
        f"- **fail**: {item.question} {f'{which}: ' if which else ''}{plain(item.why)}."
        for item, which in answers
        if item.verdict == "fail"
    ]
    unknown = dict.fromkeys(item.question for item, _ in answers if item.verdict == "unknown")
    lines += [f"- **not known yet**: {' '.join(unknown)}"] if unknown else []
    return lines or ["Nothing speaks against beginning."]


def _answers(tiers: Sequence[TierPage]) -> Iterator[tuple[Item, str]]:
    """Yield each answer once, with the tiers that it is about; "": all of them."""
    for answers in zip(*(tier.items for tier in tiers), strict=True):
        for item in dict.fromkeys(answers):
            own = [tier.plan.tier or "" for tier in tiers if item in tier.items]
            yield item, "" if len(own) == len(tiers) else ", ".join(own)


def checklist_page(answers: Iterable[tuple[Item, str]]) -> list[str]:
    """Return the checklist as a table; each answer has the tiers that it is about."""
    rows = (
        (item.question, which, item.verdict.replace("fail", "**fail**"), plain(item.why))
        for item, which in answers
    )
    return ["## Before you begin", "", *table(("", "", "", "because"), rows)]


def _in_full(page: Page) -> Iterator[list[str]]:
    compared = [tier for tier in page.tiers if tier.plan.confirmation is not None]
    yield [_power(compared[-1])] if compared else []
    yield [f"- **{tier.plan.tier}**: {_planned(tier.plan)}" for tier in page.tiers]
    yield checklist_page(_answers(page.tiers))


def _power(tier: TierPage) -> str:
    """The probability of showing a true gain, for the largest tier with a comparison."""
    plan, gain, calibration = tier.plan, tier.detectable, tier.plan.calibration
    assert plan.confirmation is not None, "it compares"
    seeds, rules = plan.confirmation.seeds, plan.thresholds
    said = f"A Go needs a gain of {rules.go_gain:.1%} on {seeds} fresh seeds, shown with "
    said += f"{1 - rules.go_level:.0%} confidence. "
    if gain is None or calibration is None or not calibration.sd_score:
        return f"{said}The noise is not measured, so neither is the detectable gain."
    spread = sqrt(2) * calibration.sd_score / abs(calibration.mean_score or 1.0)
    power = power_of(rules.go_gain, spread, seeds, rules.go_level)
    return (
        f"{said}Detectable gain at 80 % power: {gain:.2%}. A gain of {rules.go_gain:.1%} is shown "
        f"{power:.0%} of the time."
    )


def _planned(plan: Plan) -> str:
    """The tier's intent, shape and limits."""
    assert plan.tier is not None, "a search has one"
    said = [INTENT[plan.phase, plan.tier], f"as written {plan.nominal.in_words}", *plan.reasons]
    if plan.confirmation is not None and plan.confirmation.long_run is not None:
        longer = plan.confirmation.long_run
        said.append(f"after a Go {2 * longer.seeds} evaluations, {longer.variant.label}")
    said.append(f"each attempt reserves {plan.limits.reserve_ms / 1000:.0f} s")
    return f"{'; '.join(said)}."


def in_short(times: Times) -> str:
    """Return the time of an evaluation and its origin, in a line."""
    calibration = times.calibration
    if calibration is None:
        return (
            f"Not calibrated here, so no times. Measure with `{PROGRAM} calibrate` and the same "
            "--objective and --set, or say `--assume-eval-seconds X`."
        )
    if times.prior is not None:
        return (
            f"**Estimated, not calibrated here**: {plain(times.prior)}. The run calibrates first."
        )
    if times.origin == "assumed":
        return f"**Assumed, not measured**: {calibration.median_seconds:g} s an evaluation."
    seconds = sorted(sample.seconds for sample in calibration.samples)
    low, middle, high = (f"{own:.3g}" for own in (seconds[0], median(seconds), seconds[-1]))
    return (
        f"**Measured here:** an evaluation takes {middle} s (median of {len(seconds)}; {low} to "
        f"{high} s): one device does {3600 / median(seconds):.0f} an hour."
    )
