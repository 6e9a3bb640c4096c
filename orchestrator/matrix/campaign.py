"""A campaign: conditions on the same seeds, in one ledger.

The conditions are those listed in a configuration, the full factorial of its factors, and the
controls: the configuration itself and the objective's own.
"""

import json
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import floor
from pathlib import Path
from statistics import median
from typing import Any

from budgets.formatting import plain, table
from budgets.plan import CampaignPlan, Condition
from budgets.state import RunState
from objectives import registry
from objectives.settings import shown
from orchestrator.capacity import Pace
from orchestrator.config import TRAINING, Config, Values, as_shown, flattened
from orchestrator.matrix.carry_out import Matrix
from orchestrator.plan.forecast import relative_flops, times_here
from orchestrator.plan.page import Page, page_text, tier_page
from orchestrator.plan.resolve import slots_of

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}")
"""Safe for any file system and shell."""

Named = tuple[str, Values, Mapping[str, Any]]
"""A condition's name, its settings, and its levels or that it is a control."""


def campaign_name(config: Config) -> str:
    """Return the campaign's name, by default its file's."""
    if config.campaign is not None and config.campaign.name is not None:
        return config.campaign.name
    stem = "" if config.file is None else config.file.stem.lower()
    return re.sub(r"[^a-z0-9._-]+", "-", stem)[:64].strip("-._") or "campaign"


def campaign_from(config: Config) -> CampaignPlan:
    """Return a campaign as part of a plan: each condition as the objective reads it.

    One equal to a control is that control. Raises ValueError, naming the condition.
    """
    assert config.campaign is not None, "the caller has checked it"
    campaign, factors = config.campaign, factors_of(config.factors)
    if not campaign.conditions and not factors:
        raise ValueError(
            "a campaign needs conditions: [[campaign.conditions]] with a name each, or [factors]"
        )
    kept, names = dict[str, Condition](), dict[str, str]()
    for name, settings, own in _named(config, factors):
        read, condition = _condition(config, name, settings, own)
        if other := names.get(name.lower()):
            raise ValueError(f"conditions {other!r} and {name!r} cannot be told apart: rename one")
        names[name.lower()] = name
        if (first := kept.setdefault(read, condition)) is condition:
            continue
        if not condition.control:
            raise ValueError(f"conditions {first.name} and {name} are the same configuration")
        kept[read] = first.model_copy(update={"control": True})
    return CampaignPlan(
        name=campaign_name(config),
        conditions=tuple(kept.values()),
        seeds=tuple(campaign.seeds),
        factors={name: tuple(levels) for name, levels in factors.items()},
        parallel=campaign.parallel,
        max_workers=campaign.max_workers,
        stagger_seconds=campaign.stagger_seconds,
    )


def _condition(
    config: Config, name: Any, settings: Values, own: Mapping[str, Any]
) -> tuple[str, Condition]:
    """Return all settings as the objective reads them, as text, and the condition."""
    if not isinstance(name, str) or not SAFE_NAME.fullmatch(name):
        raise ValueError(
            f"condition {shown(name)}: expected a name of 1 to 100 letters, digits and "
            ". _ + = -, beginning with a letter or digit"
        )
    base = config.tuned
    try:
        varied = registry.load(registry.varied(base.spec, settings))
    except ValueError as error:
        raise ValueError(f"condition {name}: {error}") from error
    code = varied.spec.settings.get(registry.CODE)
    if code != base.spec.settings.get(registry.CODE):  # another program's sources
        settings = {**settings, registry.CODE: code}
    return json.dumps(varied.spec.settings, sort_keys=True, default=str), Condition(
        name=name,
        settings=settings,
        point=base.space.baseline,
        knobs=varied.space.decode(varied.space.baseline),
        cost_factor=relative_flops(varied, base) or 1.0,
        **own,
    )


def config_of(config: Config, condition: Condition) -> Config:
    """Return the configuration of that condition alone."""
    varied = registry.varied(config.tuned.spec, condition.settings)
    return config.with_objective(registry.load(varied))


# Factors and conditions


def factors_of(table: Mapping[str, Any]) -> dict[str, dict[str, Values]]:
    """Return the settings of each level of the table `[factors]`, by the names of both.

    A list holds values of the setting of that name; a table holds a table of settings for each
    level. Raises ValueError, naming the factor, on anything else.
    """
    found: dict[str, dict[str, Values]] = {}
    for factor, given in table.items():
        levels = given
        if isinstance(given, list):
            levels = {_as_name(value): {factor: value} for value in given}
            if len(levels) < len(given):
                raise ValueError(
                    f"factors.{factor}: two levels have the same name: leave one out, or give "
                    "the levels names in a table"
                )
        if not isinstance(levels, dict) or {*map(type, levels.values())} != {dict}:
            raise ValueError(
                f"factors.{factor}: expected a list of values, or a table of settings for a level"
            )
        found[factor] = {
            name: _settings(own, f"factors.{factor}.{name}") for name, own in levels.items()
        }
    return found


def _as_name(value: Any) -> str:
    """Return `true`, `0`, `0.5`, `3e10`: a value as people write it."""
    return f"{value:.9g}".replace("e+", "e") if isinstance(value, float) else as_shown(value)


def _settings(given: Mapping[str, Any], place: str) -> Values:
    """Return settings of the objective; their keys may begin with `training.`."""
    return {key.removeprefix(f"{TRAINING}."): own for key, own in flattened(given, place)}


def _named(config: Config, factors: Mapping[str, Mapping[str, Values]]) -> Iterator[Named]:
    """Yield what the file lists, every combination of levels, and the controls.

    Of the factors the last varies fastest.
    """
    assert config.campaign is not None
    for entry in config.campaign.conditions:
        settings = {key: value for key, value in entry.items() if key != "name"}
        yield entry.get("name", ""), _settings(settings, f"condition {entry.get('name', '')}"), {}
    for chosen in product(*(own.items() for own in factors.values())) if factors else ():
        levels = {factor: level for factor, (level, _) in zip(factors, chosen, strict=True)}
        name = "_".join(f"{f.rpartition('.')[2]}{level}" for f, level in levels.items())
        yield name, dict(ChainMap(*(own for _, own in chosen[::-1]))), {"levels": levels}
    if config.campaign.controls:
        yield "default_base", {}, {"control": True}
        for own in config.tuned.controls():
            yield f"{own.name.replace(' ', '-')}_base", dict(own.settings), {"control": True}


# The campaign's run


def campaign_matrix(config: Config, campaign: CampaignPlan) -> Matrix:
    """Return a campaign as one generation whose candidates are the conditions.

    Raises ValueError if a cap on evaluations does not pay for all of them.
    """
    own = {"thresholds": config.thresholds, "campaign": campaign}
    conditions, seeds = campaign.conditions, len(campaign.seeds)
    return Matrix(config, "campaign", conditions, seeds, campaign.name, fields=own)


class Staggered(Pace):
    """Admits one more evaluation in flight every `seconds`, by a monotonic clock."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._began: float | None = None

    def admits(self, state: RunState) -> bool:
        at = self._now()
        if self._began is None:
            self._began = at
        return len(state.accounts.holds) < 1 + floor((at - self._began) / self._seconds)


# What it would run and take


def runs_page(campaign: CampaignPlan) -> list[str]:
    """Return the conditions and the names of their runs as Markdown."""
    rows, seeds = [], campaign.seeds
    for one in campaign.conditions:
        own = {name: value for name, value in one.settings.items() if name != registry.CODE}
        sets = ", ".join(f"{TRAINING}.{name} = {as_shown(value)}" for name, value in own.items())
        rows.append((plain(one.name), plain(sets or "-"), "control" if one.control else "run"))
    return [
        *("## All runs", ""),
        f"{plain(campaign.name)}: {len(campaign.conditions)} conditions on {len(seeds)} seeds = "
        f"{campaign.evaluations} evaluations.",
        *("", *table(("condition", "sets", "type"), rows), ""),
        f"Seeds: {', '.join(map(str, seeds))}. A run is called {campaign.runs[0][2]}.",
    ]


def campaign_plan(config: Config, campaign: CampaignPlan, *, in_full: bool) -> tuple[Values, str]:
    """Return the campaign and what it would take, as JSON and as Markdown.

    A condition takes the time of the configuration's evaluation, scaled by exact FLOPs.
    """
    devices, assumed = slots_of(config), config.evaluation.assume_eval_seconds
    at_once = min(
        campaign.workers(devices.count), config.backend.max_concurrent or campaign.evaluations
    )
    times = times_here(Path(config.runs_dir), config.tuned, devices, assumed)
    used = devices.model_copy(update={"count": at_once})
    plan = campaign_matrix(config, campaign).plan(used, times.calibration)
    own = tier_page(plan, times)
    rule_of_thumb = None
    if own.search is not None:
        typical = own.search["ideal_hours"] * median(one.cost_factor for one in campaign.conditions)
        rule_of_thumb = typical + campaign.stagger_seconds * (at_once - 1) / 3600
    runs = [name for _, _, name in campaign.runs]
    document = {
        **campaign.model_dump(mode="json"),
        "total_runs": len(runs),
        "runs": runs,
        "effective_parallelism": at_once,
        "rule_of_thumb_hours": rule_of_thumb,
        **own.model_dump(mode="json", include={"forecast", "cost", "checklist"}),
    }
    text = page_text(Page(times=times, evaluation=None, tiers=(own,)), in_full=in_full)
    return document, "\n".join([text, *runs_page(campaign)])
