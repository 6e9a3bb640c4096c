"""The page of a plan: ten lines on each tier, its checklist, or all that they rest on.

Without side effects.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from budgets.formatting import PROGRAM, duration, plain, table
from budgets.plan import Caps, Devices, Frozen, Plan, Source, Tier
from budgets.rules import paused_by_chance
from budgets.schedule import expected
from budgets.tiers import INTENT
from objectives.api import Objective, SetupError
from objectives.registry import kind
from orchestrator.config import Config
from orchestrator.plan.forecast import (
    Forecast,
    Times,
    detectable_gain,
    forecast_of,
    known_knobs,
    times_here,
)
from orchestrator.plan.phase2 import beginning
from orchestrator.plan.resolve import search_plan

# The checklist before anything is paid for

Verdict = Literal["pass", "fail", "unknown"]

NOT_MEASURED = "not measured here"

LEAST_SAMPLES = 3
MOST_IDLE = 0.35  # of the devices' time in a generation
MOST_TIMEOUTS = 0.05  # of evaluations: with more, the limit decides the ranking


@dataclass(frozen=True)
class Item:
    """A question and its answer."""

    question: str
    verdict: Verdict
    why: str


def checklist(
    plan: Plan,
    times: Times,
    forecast: Forecast | None,
    now: datetime,
    knobs: Mapping[str, str] | None = None,
) -> Iterator[Item]:
    """Yield every question with its answer, in a fixed order.

    Without `knobs` the run searches none.
    """
    why = "a smoke test: it decides nothing"
    if plan.campaign is not None and len(plan.campaign.seeds) > 1:
        why = f"full: {len(plan.campaign.seeds)} seeds tell effects from chance"
    elif plan.confirmation is not None:
        why = "full: it ends with a verdict"
    yield Item("Smoke test or full run?", "pass", why)

    samples, limit = () if times.calibration is None else times.calibration.samples, plan.limits
    verdict: Verdict = "unknown"
    why = f"{limit.wall_seconds:g} s; {NOT_MEASURED}"
    if samples:
        share = limit.wall_seconds / max(sample.seconds for sample in samples)
        verdict = _passes(share > 1 and times.timeouts <= MOST_TIMEOUTS)
        why = f"{share:.1f} x the longest measured; {times.timeouts:.0%} were killed at theirs"
    yield Item("Is the limit of an evaluation intentional?", verdict, why)

    batch, devices = plan.resolved.per_generation, plan.devices.count
    idle = -batch % devices / (batch + -batch % devices)  # in the last round of a generation
    why = f"{batch} evaluations at a time on {devices}, {idle:.0%} of the time idle"
    yield Item("Is it as parallel as its devices?", _passes(idle <= MOST_IDLE), why)

    verdict, why = "unknown" if times.origin == "none" else "fail", NOT_MEASURED
    if samples:
        verdict, why = _passes(len(samples) >= LEAST_SAMPLES), f"measured on {len(samples)} seeds"
    yield Item("Does a pilot confirm the time of an evaluation?", verdict, why)

    hours, device_hours = None, None
    if forecast is not None:
        hours, device_hours = forecast.hours_free, forecast.device_hours_free
    verdict, why = _fits(hours, hours_allowed(plan.caps, now))
    yield Item("Is the wall clock acceptable?", verdict, why)

    cap, price = plan.caps.cost, plan.price_per_device_hour
    limits = {"--max-device-hours": plan.caps.device_hours, "--max-cost": cap and cap / price}
    verdict, why = _fits(device_hours, limits, without="pass")
    yield Item("Does it fit under the caps on device time and cost?", verdict, why)

    if knobs is not None:
        yield knobs_item(knobs)


def _passes(is_good: bool) -> Verdict:
    return "pass" if is_good else "fail"


def hours_allowed(caps: Caps, now: datetime) -> dict[str, float | None]:
    """Return the hours that each limit leaves a run that begins now; None without that limit."""
    left = None  # of the window, without its safety margin
    if caps.window is not None:
        left = max(0.0, caps.window.hours_from(now) - caps.window.margin_seconds / 3600)
    return {"--window": left, "--max-hours": caps.hours}


def _fits(
    needed: float | None, limits: Mapping[str, float | None], without: Verdict = "unknown"
) -> tuple[Verdict, str]:
    """Whether the hours that must be free are; `without` is the answer where there is no limit."""
    allowed = {name: most for name, most in limits.items() if most is not None}
    said = NOT_MEASURED if needed is None else f"{duration(3600 * needed)} must be free"
    if not allowed:
        return without, f"{said}; no {' or '.join(limits)}"
    said += "".join(f"; {name} allows {duration(3600 * most)}" for name, most in allowed.items())
    return "unknown" if needed is None else _passes(needed <= min(allowed.values())), said


def knobs_item(known: Mapping[str, str]) -> Item:
    """Return whether checks have shown that the knobs move the score."""
    said = (
        f"{list(known.values()).count('alive')} of {len(known)} knobs are shown to move the score"
    )
    verdict: Verdict = "pass"
    if dead := [name for name, state in known.items() if state == "dead"]:
        verdict, said = "fail", f"{said}; {', '.join(dead)} did not when checked"
    elif "unknown" in known.values():
        verdict = "unknown"
        said += f": {PROGRAM} check knobs with the same --objective and --set"
    return Item("Are the knobs shown to be alive?", verdict, said)


# The page


class TierPage(Frozen):
    """One tier, or a campaign: its plan, its price, its detectable gain and its checklist."""

    plan: Plan
    search: dict[str, float] | None  # by formula; None: no times are known
    forecast: Forecast | None
    cost: float | None  # p50; None: without times or a price
    detectable_gain: float | None  # None: no comparison, or no known noise
    checklist: tuple[Item, ...]


class Page(Frozen):
    """The tiers side by side, and what their figures rest on. JSON is its fields."""

    times: Times
    evaluation: dict[str, float] | None
    tiers: tuple[TierPage, ...]


def _by_formula(plan: Plan) -> dict[str, float] | None:
    """The search alone at the median time: E t / W, and with the barrier G ceil(P S / W) t."""
    if plan.calibration is None:
        return None
    shape, devices = plan.resolved, plan.devices.count
    generations = [(shape.per_generation, shape.per_generation)] * shape.generations
    device_hours, hours = expected(generations, plan.calibration, devices)
    return {
        "evals_per_hour": 3600 / plan.calibration.median_seconds,  # of one device
        "device_hours": device_hours,
        "ideal_hours": device_hours / devices,
        "barrier_hours": hours,
    }


def _evaluation(objective: Objective, times: Times) -> dict[str, float] | None:
    """Steps, tokens and throughput of an evaluation; None if they are not known."""
    work = None
    with suppress(SetupError):  # it depends on data that is not there
        work = objective.flops()
    if work is None or times.calibration is None:
        return None
    seconds, tokens = times.calibration.median_seconds, work.tokens
    figures = {"tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds}
    return {"steps": work.steps, **figures}


def page_of(config: Config, devices: Devices, source: Source | None = None) -> Page:
    """Return the page of a search: of all tiers unless the configuration names one.

    Raises ValueError on a plan that is impossible.
    """
    root, objective = Path(config.runs_dir), config.tuned
    times = times_here(root, objective, devices, config.evaluation.assume_eval_seconds)
    known = known_knobs(root, objective, devices.kind)
    now, pages = datetime.now(UTC), list[TierPage]()
    for tier in get_args(Tier) if config.search.tier is None else (config.search.tier,):
        own = config.having({"search.tier": tier})
        plan = search_plan(own, devices, times.calibration, source)
        pages.append(tier_page(plan, times, now, known))
    return Page(times=times, evaluation=_evaluation(objective, times), tiers=tuple(pages))


def tier_page(
    plan: Plan, times: Times, now: datetime, knobs: Mapping[str, str] | None = None
) -> TierPage:
    """Return what is known of a plan."""
    forecast = forecast_of(plan, calibrates=times.calibrates)
    price = plan.price_per_device_hour
    return TierPage(
        plan=plan,
        search=_by_formula(plan),
        forecast=forecast,
        cost=forecast.device_hours_p50 * price if forecast and price else None,
        detectable_gain=detectable_gain(plan),
        checklist=tuple(checklist(plan, times, forecast, now, knobs)),
    )


def page_text(page: Page, *, in_full: bool = False) -> str:
    """Return the tiers side by side and what is not in order, or `in_full` everything."""
    plan = page.tiers[0].plan
    devices, name = plan.devices, kind(plan.objective)
    parts = [
        [f"# {plan.phase} of {plain(name)} on {devices.count} x {devices.name}"],
        _tiers(page),
        [times_in_short(page.times)],
        [beginning(plan)],
    ]
    if in_full and plan.tier is not None:
        parts.append([f"- **{tier.plan.tier}**: {_planned(tier)}." for tier in page.tiers])
    parts.append(_answers(page.tiers, in_full=in_full))
    if not in_full:
        parts.append(["`--verbose` shows the whole checklist, and the sizes of each tier."])
    return "\n\n".join("\n".join(part) for part in parts if any(part)) + "\n"


def _tiers(page: Page) -> list[str]:
    """The main table; evaluations are those of the search + those of the verdict."""
    is_priced, rows = bool(page.tiers[0].plan.price_per_device_hour), []
    for tier in page.tiers:
        wanted, shape, took = tier.plan.confirmation, tier.plan.resolved, tier.forecast
        sizes = {} if wanted is None else wanted.sizes()
        beside = sum(count for name, (count, _) in sizes.items() if name != "long_run")
        times = ["?"] * (3 + is_priced)
        if took is not None:
            times = [duration(3600 * took.hours_p50), duration(3600 * took.hours_p90)]
            times += [f"{took.device_hours_p50:.3g}"]
            times += [] if tier.cost is None else [f"{tier.cost:.2f}"]
        gain = "no verdict" if wanted is None else "?"
        if tier.detectable_gain is not None:
            gain = f"{tier.detectable_gain:.2%}"
        count = f"{shape.evaluations}{f' + {beside}' if beside else ''}"
        rows.append((tier.plan.tier or "", shape.in_words, count, *times, gain))
    columns = (">evaluations", ">p50", ">p90", ">device-hours", *[">cost"] * is_priced)
    return table(("tier", "P x G x S", *columns, ">detectable gain"), rows)


def _answers(tiers: Sequence[TierPage], *, in_full: bool) -> list[str]:
    """The checklist, tier by tier where they differ; in short without what is in order."""
    lines = []
    for items in zip(*(tier.checklist for tier in tiers), strict=True):
        verdicts, whys = [item.verdict for item in items], [item.why for item in items]
        if len({*items}) > 1:
            whys = [f"{tier.plan.tier}: {why}" for tier, why in zip(tiers, whys, strict=True)]
        if in_full or {*verdicts} != {"pass"}:
            verdict, why = (
                " / ".join(said if len({*said}) > 1 else said[:1]) for said in (verdicts, whys)
            )
            lines.append(f"- **{verdict}**: {items[0].question} {plain(why)}.")
    return lines or ["Nothing speaks against beginning."]


def _planned(tier: TierPage) -> str:
    """The tier's intent, why its sizes are not as written, and the long run after a Go."""
    plan, wanted = tier.plan, tier.plan.confirmation
    assert plan.tier is not None, "a search has one"
    said = [INTENT[plan.phase, plan.tier], f"as written {plan.nominal.in_words}", *plan.reasons]
    if plan.thresholds.crash_level is None:
        one, three = (f"{paused_by_chance(plan, rate):.0%}" for rate in (0.01, 0.03))
        said.append(
            f"where 1 % of evaluations fail, {one} of such searches pause, and {three} at 3 %"
        )
    if wanted is not None and (longer := wanted.long_run):
        more = f"after a Go {2 * wanted.long_run_seeds} evaluations, {longer.name}"
        took = tier.forecast
        said += [more if took is None else f"{more}: {duration(3600 * took.long_run_hours_p50)}"]
    return "; ".join(said)


def times_in_short(times: Times) -> str:
    """Return the time of an evaluation and its origin, in a line."""
    if (calibration := times.calibration) is None:
        return (
            f"Not calibrated here, so no times. Measure with `{PROGRAM} calibrate` and the same "
            "--objective and --set, or say `--assume-eval-seconds X`."
        )
    if times.prior is not None:
        return (
            f"**Estimated, not calibrated here**: {plain(times.prior)}. The run calibrates first."
        )
    said = f"{calibration.median_seconds:.3g} s an evaluation"
    if times.origin == "assumed":
        return f"**Assumed, not measured**: {said}."
    seconds = [sample.seconds for sample in calibration.samples]
    of = f"median of {len(seconds)}; {min(seconds):.3g} to {max(seconds):.3g} s"
    return f"**Measured here:** {said} ({of})."
