"""What a campaign would run and take, before any of it is paid for."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from budgets.formatting import PROGRAM, duration, plain, table
from budgets.plan import CampaignPlan
from orchestrator.config import Config, as_shown
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.campaign import campaign_matrix, changed_by
from orchestrator.plan.checks import checklist
from orchestrator.plan.forecast import forecast_of
from orchestrator.plan.page import checklist_page, in_short
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import times_here

Document = dict[str, Any]


def runs_document(campaign: CampaignPlan) -> Document:
    """Return every condition and run as JSON."""
    return {
        "name": campaign.name,
        "design": design(campaign),
        "total_runs": campaign.evaluations,
        "conditions": [condition.model_dump(mode="json") for condition in campaign.conditions],
        "seeds": list(campaign.seeds),
        "runs": [name for _, _, name in campaign.runs],
    }


def design(campaign: CampaignPlan) -> str:
    """Return `2x2 factorial`, `3 conditions`, or both."""
    grid = "x".join(str(len(factor.levels)) for factor in campaign.factors)
    listed = sum(not (one.levels or one.control) for one in campaign.conditions)
    parts = (f"{grid} factorial" * bool(grid), f"{listed} conditions" * bool(listed))
    return " and ".join(filter(None, parts))


def runs_page(campaign: CampaignPlan) -> Iterator[str]:
    """Yield the conditions and the names of their runs as Markdown."""
    factors, seeds = [factor.name for factor in campaign.factors], campaign.seeds
    controls = sum(condition.control for condition in campaign.conditions)
    yield from ("## All runs", "")
    yield (
        f"{plain(campaign.name)}: {design(campaign)}, {len(campaign.conditions)} conditions "
        f"({controls} of them controls) on {len(seeds)} seeds = {campaign.evaluations} evaluations."
    )
    rows = (
        (
            place,
            plain(condition.name),
            *(plain(condition.levels.get(name, "-")) for name in factors),
            plain(
                ", ".join(f"{k} = {as_shown(v)}" for k, v in changed_by(condition).items()) or "-"
            ),
            "control" if condition.control else "run",
        )
        for place, condition in enumerate(campaign.conditions, 1)
    )
    yield from ("", *table((">#", "condition", *map(plain, factors), "sets", "type"), rows))
    yield from ("", f"Seeds: {', '.join(map(str, seeds))}. A run is called {campaign.runs[0][2]}.")


def campaign_plan(
    config: Config, campaign: CampaignPlan, now: datetime
) -> tuple[Document, list[str]]:
    """Return what the campaign would take, as JSON and as Markdown.

    A condition takes the time of the configuration's evaluation, scaled by exact FLOPs.
    """
    devices = devices_of(slots_of(config))
    at_once = min(
        campaign.workers(devices.count), config.backend.max_concurrent or campaign.evaluations
    )
    assumed = config.evaluation.assume_eval_seconds
    times = times_here(Path(config.runs_dir), config.tuned, devices, assumed)
    plan = campaign_matrix(config, campaign).plan(devices, times.calibration)
    forecast = forecast_of(plan, times, at_once)
    items = checklist(plan, times, forecast, now, at_once)
    seconds = None if times.calibration is None else times.calibration.median_seconds
    lengths = {one.name: one.cost_factor for one in campaign.conditions}
    rule_of_thumb = None
    if seconds is not None:
        each = seconds * median(lengths.values())
        stagger = campaign.stagger_seconds * (at_once - 1)
        rule_of_thumb = (campaign.evaluations * each / at_once + stagger) / 3600
    document = {
        "total_runs": campaign.evaluations,
        "effective_parallelism": at_once,
        "rule_of_thumb_hours": rule_of_thumb,
        "devices": devices.model_dump(),
        "forecast": None if forecast is None else asdict(forecast),
        "conditions": [
            {"name": name, "seconds": None if seconds is None else seconds * length}
            for name, length in lengths.items()
        ],
        "checklist": [item._asdict() for item in items],
    }
    lines = ["## What it would take", "", in_short(times), ""]
    if forecast is None:
        lines[2] += f" `{PROGRAM} calibrate FILE` measures what all conditions have in common."
    else:
        price, hours = config.budget.price_per_device_hour, forecast.device_hours_p50
        cost = f" = {hours * price:.2f}" if price else ""
        lines += [
            f"{campaign.evaluations} runs, {at_once} at once on {devices.count} x "
            f"{plain(devices.name)}: p50 {duration(3600 * forecast.hours_p50)}, p90 "
            f"{duration(3600 * forecast.hours_p90)}, {hours:.3g} device-hours{cost}.",
            "",
        ]
    return document, [*lines, *checklist_page([(item, "") for item in items])]
