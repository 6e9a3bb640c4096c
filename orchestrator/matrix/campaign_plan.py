"""What a campaign would run and take, before any of it is paid: by measured times, or no number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapreplace
from pathlib import Path
from statistics import median
from typing import Any

from budgets.accounts import MS_PER_HOUR
from budgets.formatting import PROGRAM, duration, plain, table
from budgets.plan import CampaignTerms, Condition, Devices, Plan
from objectives import registry
from objectives.api import Objective
from orchestrator.config import Config, as_shown
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.campaign import (
    campaign_matrix,
    campaign_name,
    campaign_of,
    cells_of,
    factors_of,
    runs_of,
    terms_of,
)
from orchestrator.plan import checks as checklist
from orchestrator.plan.checks import Item
from orchestrator.plan.history import calibration_here
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import Times, disk_of, times_here

Document = dict[str, Any]


def runs_document(config: Config) -> Document:
    """Every condition and run as JSON."""
    campaign, cells = campaign_of(config), cells_of(config)
    return {
        "name": campaign_name(config),
        "design": design(config),
        "total_runs": len(cells) * len(campaign.seeds),
        "conditions": [
            {
                "name": cell.name,
                "settings": dict(cell.settings),
                "levels": dict(cell.levels),
                "control": cell.control,
            }
            for cell in cells
        ],
        "seeds": list(campaign.seeds),
        "runs": [name for _, _, name in runs_of(config)],
    }


def design(config: Config) -> str:
    """`2x2 factorial`, `3 conditions`, or both."""
    factors, conditions = factors_of(config.factors), campaign_of(config).conditions
    parts = []
    if factors:
        parts.append(f"{'x'.join(str(len(levels)) for levels in factors.values())} factorial")
    if conditions:
        parts.append(f"{len(conditions)} conditions")
    return " and ".join(parts)


def runs_page(config: Config) -> Iterator[str]:
    """Every condition and how its runs are called, as Markdown."""
    campaign, cells = campaign_of(config), cells_of(config)
    controls, seeds = sum(cell.control for cell in cells), len(campaign.seeds)
    yield from ("## All runs", "")
    yield (
        f"{plain(campaign_name(config))}: {design(config)}, {len(cells)} conditions "
        f"({controls} of them controls) on {seeds} seeds = {len(cells) * seeds} "
        "evaluations."
    )
    factors = list(config.factors)
    rows = (
        (
            place,
            plain(cell.name),
            *(plain(cell.levels.get(name, "-")) for name in factors),
            plain(", ".join(f"{k} = {as_shown(v)}" for k, v in cell.settings.items()) or "-"),
            _kind(cell.control),
        )
        for place, cell in enumerate(cells, 1)
    )
    yield from ("", *table((">#", "condition", *map(plain, factors), "sets", "type"), rows))
    seeds_said = ", ".join(map(str, campaign.seeds))
    yield from ("", f"Seeds: {seeds_said}. A run is called {plain(next(runs_of(config))[2])}.")


def _kind(control: bool) -> str:
    return "control" if control else "run"


@dataclass(frozen=True)
class Expected:
    """What an evaluation of a condition is expected to take."""

    condition: Condition
    seconds: float | None  # None: nothing like it was measured
    origin: str  # of that figure


def campaign_plan(config: Config, now: datetime) -> tuple[Document, list[str]]:
    """What the campaign would take, as JSON and as Markdown. Raises ValueError."""
    root, objective = Path(config.runs_dir), config.tuned
    assumed = config.evaluation.assume_eval_seconds
    devices, terms = devices_of(slots_of(config)), terms_of(config)
    at_once = min(terms.workers(devices.count), config.backend.max_concurrent or terms.evaluations)
    expected = expected_of(terms.conditions, objective, devices, root, assumed)
    price = config.budget.price_per_device_hour
    takes = forecast(terms, [one.seconds for one in expected], at_once, price)
    times = times_here(root, objective, devices, assumed)
    plan = campaign_matrix(config, terms).plan(devices, times.calibration)
    items = _checklist(plan, times, takes, at_once, root, now)
    document = {
        "total_runs": terms.evaluations,
        "effective_parallelism": at_once,
        "devices": devices.model_dump(),
        **takes,
        "conditions": [
            {"name": one.condition.name, "seconds": one.seconds, "origin": one.origin}
            for one in expected
        ],
        "checklist": [item._asdict() for item in items],
    }
    page = _page(document, terms, expected, price)
    return document, ["## What it would take", "", *page, *_checklist_page(items)]


def forecast(
    terms: CampaignTerms, seconds: Sequence[float | None], at_once: int, price: float
) -> dict[str, float | None]:
    """Hours, device-hours and cost of all runs; `seconds` are those of each condition.

    `hours` is the wall clock with each evaluation on the device that is free first, in their order;
    the rule of thumb is runs x median / parallelism + stagger x (parallelism - 1).
    """
    known = [one for one in seconds if one is not None]
    if len(known) < len(seconds):
        names = ("median_seconds", "device_hours", "cost", "hours", "rule_of_thumb_hours")
        return dict.fromkeys(names)
    middle, stagger, end = median(known), terms.stagger_seconds, 0.0
    free = [worker * stagger for worker in range(at_once)]
    for one in known:
        for _ in terms.seeds:
            end = max(end, free[0] + one)
            heapreplace(free, free[0] + one)
    device_hours = len(terms.seeds) * sum(known) / 3600
    rule_of_thumb = terms.evaluations * middle / at_once + stagger * (at_once - 1)
    return {
        "median_seconds": middle,
        "device_hours": device_hours,
        "cost": device_hours * price,
        "hours": end / 3600,
        "rule_of_thumb_hours": rule_of_thumb / 3600,
    }


def expected_of(
    conditions: Sequence[Condition],
    objective: Objective,
    devices: Devices,
    root: Path,
    assumed_seconds: float | None = None,
) -> list[Expected]:
    """What an evaluation of each takes: assumed, measured, scaled from a prior run, or unknown."""
    if assumed_seconds is not None:
        origin = f"assumed: {assumed_seconds:g} s an evaluation, by exact FLOPs of each condition"
        return [Expected(one, assumed_seconds * one.cost_factor, origin) for one in conditions]
    common, flops = calibration_here(root, objective, devices), objective.flops()
    found = []
    for one in conditions:
        varied = registry.load(registry.varied(objective.spec, one.settings))
        times, own = times_here(root, varied, devices), varied.flops()
        is_same_work = own is not None and flops is not None and own.total == flops.total
        if common is not None and is_same_work and times.origin != "measured":
            found.append(Expected(one, common.median_seconds, "calibrated, with the same FLOPs"))
        elif times.calibration is None:
            found.append(Expected(one, None, "no estimate"))
        else:
            origin = "calibrated" if times.prior is None else times.prior.sentence()
            found.append(Expected(one, times.calibration.median_seconds, origin))
    return found


def _page(
    document: Document, terms: CampaignTerms, expected: Sequence[Expected], price: float
) -> Iterator[str]:
    seeds, devices = len(terms.seeds), document["devices"]
    columns = ("condition", "type", ">runs", ">a run", ">device-hours")
    rows = (
        (
            plain(one.condition.name),
            _kind(one.condition.control),
            seeds,
            "no estimate" if one.seconds is None else f"{one.seconds:.3g} s",
            "?" if one.seconds is None else f"{seeds * one.seconds / 3600:.3g}",
        )
        for one in expected
    )
    yield from (*table(columns, rows), "")
    yield (
        f"{len(terms.conditions)} conditions x {seeds} seeds = {terms.evaluations} runs, "
        f"{document['effective_parallelism']} at once on {devices['count']} x "
        f"{plain(devices['name'])}."
    )
    if document["hours"] is None:
        unknown = [plain(one.condition.name) for one in expected if one.seconds is None]
        which = unknown[0] if len(unknown) == 1 else f"{unknown[0]} and {len(unknown) - 1} others"
        yield (
            f"No estimate of all: nothing like {which} was measured here. "
            f"`{PROGRAM} calibrate FILE` measures what all conditions have in common."
        )
    else:
        cost = f" = {document['cost']:.2f}" if price else ""
        yield (
            f"About {duration(3600 * document['hours'])} of wall clock, "
            f"{document['device_hours']:.3g} device-hours{cost}."
        )
    origins = dict.fromkeys(one.origin for one in expected)
    yield from ("", *(f"- {plain(o)}." for o in origins if o not in ("calibrated", "no estimate")))


def _checklist(  # noqa: PLR0913, PLR0917 - one a thing that decides it
    plan: Plan,
    times: Times,
    takes: Mapping[str, float | None],
    at_once: int,
    root: Path,
    now: datetime,
) -> tuple[Item, ...]:
    """What to ask before it is paid; the last evaluation must find its whole limit free."""
    assert plan.campaign is not None
    seeds, devices = len(plan.campaign.seeds), plan.devices.count
    longest = max(condition.cost_factor for condition in plan.campaign.conditions)
    last = plan.limits.stretched(longest).reserve_ms / MS_PER_HOUR
    hours, device_hours, idle = takes["hours"], takes["device_hours"], None
    if hours is not None and device_hours is not None:
        idle = max(0.0, 1 - device_hours / (devices * hours)) if hours else None
        hours, device_hours = hours + last, device_hours + last
    full = f"full: {seeds} seeds tell effects from luck"
    return (
        checklist.purpose(full, is_smoke_test=seeds < 2),
        checklist.limit(plan.limits.wall_seconds, times),
        checklist.parallel(min(at_once, devices), devices, idle),
        checklist.pilot(times, now),
        checklist.wall_clock(hours, checklist.hours_allowed(plan, now)),
        checklist.caps(plan, device_hours),
        checklist.disk(disk_of(plan, root, times.evaluation_bytes)),
    )


def _checklist_page(items: Sequence[Item]) -> Iterator[str]:
    verdicts = {"fail": "**fail**"}
    cells = ((one.question, verdicts.get(one.verdict, one.verdict), one.why) for one in items)
    yield from ("", "## Before you begin", "", *table(("", "", "because"), cells))
