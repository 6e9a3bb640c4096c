"""What a campaign would run and take, before any of it is paid: by measured times, or no number."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from budgets.formatting import PROGRAM, duration, plain, table
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
from orchestrator.plan.checks import Facts, checklist
from orchestrator.plan.forecast import forecast_of
from orchestrator.plan.page import checklist_page, in_short
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import disk_of, times_here

Document = dict[str, Any]


def runs_document(config: Config) -> Document:
    """Every condition and run as JSON."""
    cells, seeds = cells_of(config), campaign_of(config).seeds
    return {
        "name": campaign_name(config),
        "design": design(config),
        "total_runs": len(cells) * len(seeds),
        "conditions": [cell._asdict() for cell in cells],
        "seeds": list(seeds),
        "runs": [name for _, _, name in runs_of(config)],
    }


def design(config: Config) -> str:
    """`2x2 factorial`, `3 conditions`, or both."""
    factors, conditions = factors_of(config.factors), campaign_of(config).conditions
    grid = "x".join(str(len(levels)) for levels in factors.values())
    parts = (
        f"{grid} factorial" * bool(factors),
        f"{len(conditions)} conditions" * bool(conditions),
    )
    return " and ".join(filter(None, parts))


def runs_page(config: Config) -> Iterator[str]:
    """Every condition and how its runs are called, as Markdown."""
    seeds, cells, factors = campaign_of(config).seeds, cells_of(config), list(config.factors)
    controls = sum(cell.control for cell in cells)
    yield from ("## All runs", "")
    yield (
        f"{plain(campaign_name(config))}: {design(config)}, {len(cells)} conditions "
        f"({controls} of them controls) on {len(seeds)} seeds = {len(cells) * len(seeds)} "
        "evaluations."
    )
    rows = (
        (
            place,
            plain(cell.name),
            *(plain(cell.levels.get(name, "-")) for name in factors),
            plain(", ".join(f"{k} = {as_shown(v)}" for k, v in cell.settings.items()) or "-"),
            "control" if cell.control else "run",
        )
        for place, cell in enumerate(cells, 1)
    )
    yield from ("", *table((">#", "condition", *map(plain, factors), "sets", "type"), rows))
    named = plain(next(runs_of(config))[2])
    yield from ("", f"Seeds: {', '.join(map(str, seeds))}. A run is called {named}.")


def campaign_plan(config: Config, now: datetime) -> tuple[Document, list[str]]:
    """What the campaign would take, as JSON and as Markdown. Raises ValueError.

    A condition takes the time of the configuration's evaluation, by exact FLOPs.
    """
    root, assumed = Path(config.runs_dir), config.evaluation.assume_eval_seconds
    devices, terms = devices_of(slots_of(config)), terms_of(config)
    at_once = min(terms.workers(devices.count), config.backend.max_concurrent or terms.evaluations)
    times = times_here(root, config.tuned, devices, assumed)
    plan = campaign_matrix(config, terms).plan(devices, times.calibration)
    took, disk = forecast_of(plan, times, at_once), disk_of(plan, root, times.evaluation_bytes)
    items = checklist(Facts(plan, times, took, disk, now, at_once))
    seconds = None if times.calibration is None else times.calibration.median_seconds
    lengths = {one.name: one.cost_factor for one in terms.conditions}
    rule_of_thumb = None
    if seconds is not None:
        each = seconds * median(lengths.values())
        stagger = terms.stagger_seconds * (at_once - 1)
        rule_of_thumb = (terms.evaluations * each / at_once + stagger) / 3600
    document = {
        "total_runs": terms.evaluations,
        "effective_parallelism": at_once,
        "rule_of_thumb_hours": rule_of_thumb,
        "devices": devices.model_dump(),
        "forecast": None if took is None else asdict(took),
        "conditions": [
            {"name": name, "seconds": None if seconds is None else seconds * length}
            for name, length in lengths.items()
        ],
        "checklist": [item._asdict() for item in items],
    }
    lines = ["## What it would take", "", in_short(times), ""]
    if took is None or seconds is None:
        lines[2] += f" `{PROGRAM} calibrate FILE` measures what all conditions have in common."
    else:
        price, hours = config.budget.price_per_device_hour, took.device_hours_p50
        rows = (
            (
                plain(name),
                f"{seconds * length:.3g} s",
                f"{len(terms.seeds) * seconds * length:.3g} s",
            )
            for name, length in lengths.items()
        )
        lines += [
            *table(("condition", ">an evaluation", ">all seeds"), rows),
            "",
            f"{terms.evaluations} runs, {at_once} at once on {devices.count} x "
            f"{plain(devices.name)}: p50 {duration(3600 * took.hours_p50)}, p90 "
            f"{duration(3600 * took.hours_p90)}, {hours:.3g} device-hours"
            + (f" = {hours * price:.2f}." if price else "."),
            "",
        ]
    return document, [*lines, *checklist_page([(item, "") for item in items])]
