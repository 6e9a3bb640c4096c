"""The page of a plan: ten lines on each tier, its checklist, or every detail.

Without side effects.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from budgets.accounts import MS_PER_HOUR
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

NOT_MEASURED = "not measured here"

LEAST_SAMPLES = 3
MOST_IDLE = 0.35  # of the devices' time in a generation
MOST_TIMEOUTS = 0.05  # of evaluations: with more, the limit decides the ranking

Answer = tuple[bool | None, str]
"""Yes, no or unknown; and why."""


@dataclass(frozen=True)
class Item:
    """A question and its answer."""

    question: str
    verdict: Literal["pass", "fail", "unknown"]
    why: str


def checklist(
    plan: Plan,
    times: Times,
    forecast: Forecast | None,
    now: datetime,
    knobs: Mapping[str, str] | None = None,
) -> tuple[Item, ...]:
    """Return every question with its answer; without `knobs` the run searches none."""
    samples = () if times.calibration is None else times.calibration.samples
    purpose, limit = "a smoke test: it decides nothing", plan.limits.wall_seconds
    if plan.campaign is not None and len(plan.campaign.seeds) > 1:
        purpose = f"full: {len(plan.campaign.seeds)} seeds tell effects from chance"
    elif plan.confirmation is not None:
        purpose = "full: it ends with a verdict"
    limits: Answer = None, f"{limit:g} s; {NOT_MEASURED}"
    pilot: Answer = None if times.calibration is None else False, NOT_MEASURED
    if samples:
        share = limit / max(sample.seconds for sample in samples)
        why = f"{share:.1f} x the longest measured; {times.timeouts:.0%} were killed at theirs"
        limits = share > 1 and times.timeouts <= MOST_TIMEOUTS, why
        pilot = len(samples) >= LEAST_SAMPLES, f"measured on {len(samples)} seeds"
    batch, devices = plan.resolved.per_generation, plan.devices.count
    idle = -batch % devices / (batch + -batch % devices)  # in the last round of a generation
    parallel = f"{batch} evaluations at a time on {devices}, {idle:.0%} of the time idle"
    needed = None if forecast is None else forecast.hours_free
    hours = _fits(needed, hours_allowed(plan.caps, now))
    cost = plan.caps.cost and plan.caps.cost / plan.price_per_device_hour
    caps = {"--max-device-hours": plan.caps.device_hours, "--max-cost": cost}
    needed = None if forecast is None else forecast.device_hours_free
    device_hours = _fits(needed, caps, without=True)
    answers: dict[str, Answer] = {
        "Smoke test or full run?": (True, purpose),
        "Is the limit of an evaluation intentional?": limits,
        "Is it as parallel as its devices?": (idle <= MOST_IDLE, parallel),
        "Does a pilot confirm the time of an evaluation?": pilot,
        "Is the wall clock acceptable?": hours,
        "Does it fit under the caps on device time and cost?": device_hours,
    }
    if knobs is not None:
        answers["Are the knobs shown to be alive?"] = shown_alive(knobs)
    return tuple(
        Item(question, "unknown" if is_good is None else "pass" if is_good else "fail", why)
        for question, (is_good, why) in answers.items()
    )


def hours_allowed(caps: Caps, now: datetime) -> dict[str, float | None]:
    """Return the hours that each limit leaves a run that begins now; None without that limit."""
    left, now_ms = None, 1000 * now.timestamp()
    if caps.window is not None:
        left = max(0.0, (caps.window.deadline_ms(now_ms) - now_ms) / MS_PER_HOUR)
    return {"--window": left, "--max-hours": caps.hours}


def _fits(
    needed: float | None, limits: Mapping[str, float | None], without: bool | None = None
) -> Answer:
    """Whether the hours that must be free are; `without` is the answer where there is no limit."""
    allowed = {name: most for name, most in limits.items() if most is not None}
    said = NOT_MEASURED if needed is None else f"{duration(3600 * needed)} must be free"
    if not allowed:
        return without, f"{said}; no {' or '.join(limits)}"
    said += "".join(f"; {name} allows {duration(3600 * most)}" for name, most in allowed.items())
    return None if needed is None else needed <= min(allowed.values()), said


def shown_alive(known: Mapping[str, str]) -> Answer:
    """Whether checks have shown that the knobs move the score."""
    alive = list(known.values()).count("alive")
    said = f"{alive} of {len(known)} knobs are shown to move the score"
    if dead := [name for name, state in known.items() if state == "dead"]:
        return False, f"{said}; {', '.join(dead)} did not when checked"
    if alive == len(known):
        return True, said
    return None, f"{said}: {PROGRAM} check knobs with the same --objective and --set"


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
    pages = list[TierPage]()
    for tier in get_args(Tier) if config.search.tier is None else (config.search.tier,):
        own = config.having({"search.tier": tier})
        plan = search_plan(own, devices, times.calibration, source)
        pages.append(tier_page(plan, times, known))
    return Page(times=times, evaluation=_evaluation(objective, times), tiers=tuple(pages))


def tier_page(plan: Plan, times: Times, knobs: Mapping[str, str] | None = None) -> TierPage:
    """Return what is known of a plan."""
    forecast = forecast_of(plan, calibrates=times.calibrates)
    price = plan.price_per_device_hour
    return TierPage(
        plan=plan,
        search=_by_formula(plan),
        forecast=forecast,
        cost=forecast.device_hours_p50 * price if forecast and price else None,
        detectable_gain=detectable_gain(plan),
        checklist=checklist(plan, times, forecast, datetime.now(UTC), knobs),
    )


def page_text(page: Page, *, in_full: bool = False) -> str:
    """Return the tiers side by side and what is not in order, or `in_full` everything."""
    plan = page.tiers[0].plan
    parts = [
        f"# {plan.phase} of {plain(kind(plan.objective))} on {plan.devices.count} x "
        f"{plan.devices.name}",
        "\n".join(_tiers(page.tiers)),
        times_in_short(page.times),
        beginning(plan),
    ]
    if in_full and plan.tier is not None:
        parts.append("\n".join(f"- **{tier.plan.tier}**: {_planned(tier)}." for tier in page.tiers))
    parts.append("\n".join(_answers(page.tiers, in_full=in_full)))
    if not in_full:
        parts.append("`--verbose` shows the whole checklist, and the sizes of each tier.")
    return "\n\n".join(filter(None, parts)) + "\n"


def _tiers(tiers: Sequence[TierPage]) -> list[str]:
    """The main table; evaluations are those of the search + those of the verdict."""
    is_priced, rows = bool(tiers[0].plan.price_per_device_hour), []
    for tier in tiers:
        wanted, shape, took = tier.plan.confirmation, tier.plan.resolved, tier.forecast
        sizes = tier.plan.comparisons
        beside = sum(count for name, (count, _) in sizes.items() if name != "long_run")
        times, gain = ["?"] * (3 + is_priced), tier.detectable_gain
        if took is not None:
            times = [duration(3600 * took.hours_p50), duration(3600 * took.hours_p90)]
            times += [f"{took.device_hours_p50:.3g}"]
            times += [] if tier.cost is None else [f"{tier.cost:.2f}"]
        least = "no verdict" if wanted is None else "?" if gain is None else f"{gain:.2%}"
        count = f"{shape.evaluations}{f' + {beside}' if beside else ''}"
        rows.append((tier.plan.tier or "", shape.in_words, count, *times, least))
    columns = (">evaluations", ">p50", ">p90", ">device-hours", *[">cost"] * is_priced)
    return table(("tier", "P x G x S", *columns, ">detectable gain"), rows)


def _answers(tiers: Sequence[TierPage], *, in_full: bool) -> list[str]:
    """The checklist, tier by tier where they differ; without `in_full` only what does not pass."""
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
    return lines or ["Every check passes."]


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
            "--objective and --set, or give `--assume-eval-seconds X`."
        )
    if times.prior is not None:
        return (
            f"**Estimated, not calibrated here**: {plain(times.prior)}. The run calibrates first."
        )
    said = f"{calibration.median_seconds:.3g} s an evaluation"
    if not calibration.samples:
        return f"**Assumed, not measured**: {said}."
    seconds = [sample.seconds for sample in calibration.samples]
    of = f"median of {len(seconds)}; {min(seconds):.3g} to {max(seconds):.3g} s"
    return f"**Measured here:** {said} ({of})."
