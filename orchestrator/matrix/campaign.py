"""A campaign: conditions on the same seeds, in one ledger.

The conditions are those listed in a configuration, the full factorial of its factors, and the
controls: the configuration itself and the objective's own.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
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
from orchestrator.config import (
    TRAINING,
    Config,
    Values,
    as_shown,
    flattened,
    format_value,
)
from orchestrator.matrix.carry_out import Matrix
from orchestrator.plan.forecast import relative_flops, times_here
from orchestrator.plan.page import Page, page_text, tier_page
from orchestrator.plan.resolve import slots_of

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}")
"""Safe for any file system and shell."""

Factors = Mapping[str, Mapping[str, Values]]
"""The settings of each level, by the names of factor and level, in their order."""


def campaign_name(config: Config) -> str:
    """Return the campaign's name, by default its file's."""
    if config.campaign is not None and config.campaign.name is not None:
        return config.campaign.name
    stem = "" if config.file is None else config.file.stem.lower()
    return re.sub(r"[^a-z0-9._-]+", "-", stem)[:64].strip("-._") or "campaign"


def campaign_from(config: Config) -> CampaignPlan:
    """Return the plan's part of a campaign. Raises ValueError, naming the condition."""
    assert config.campaign is not None, "the caller has checked it"
    campaign, factors = config.campaign, factors_of(config.factors)
    listed = [*_listed(campaign.conditions), *_factorial(factors)]
    if not listed:
        raise ValueError(
            "a campaign needs conditions: [[campaign.conditions]] with a name each, or [factors]"
        )
    if campaign.controls:
        controls = {"default": {}, **{own.name: own.settings for own in config.tuned.controls()}}
        listed += [
            _condition(f"{label.replace(' ', '-')}_base", settings, control=True)
            for label, settings in controls.items()
        ]
    _check_names(listed)
    return CampaignPlan(
        name=campaign_name(config),
        conditions=_conditions(config, listed),
        seeds=tuple(campaign.seeds),
        factors={name: tuple(levels) for name, levels in factors.items()},
        parallel=campaign.parallel,
        max_workers=campaign.max_workers,
        stagger_seconds=campaign.stagger_seconds,
    )


def _condition(name: str, settings: Values, **own: Any) -> Condition:
    """Return a condition whose settings the objective has not read yet."""
    return Condition.model_construct(name=name, settings=dict(settings), point=(), **own)


def _conditions(config: Config, listed: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions as the objective reads them; one equal to a control is that control.

    Raises ValueError, naming the condition, on a wrong setting and on two equal ones.
    """
    kept = dict[str, Condition]()
    for one in listed:
        settings = dict(one.settings)
        try:
            varied = registry.load(registry.varied(config.tuned.spec, settings))
        except ValueError as error:
            raise ValueError(f"condition {one.name}: {error}") from error
        code = varied.spec.settings.get(registry.CODE)
        if code != config.tuned.spec.settings.get(registry.CODE):  # another program's sources
            settings[registry.CODE] = code
        identity = json.dumps(varied.spec.settings, sort_keys=True, default=str)
        if (first := kept.get(identity)) is None:
            read = {
                "settings": settings,
                "point": config.tuned.space.baseline,
                "knobs": varied.space.decode(varied.space.baseline),
                "cost_factor": relative_flops(varied, config.tuned) or 1.0,
            }
            kept[identity] = Condition.model_validate({**one.model_dump(), **read})
        elif one.control:
            kept[identity] = first.model_copy(update={"control": True})
        else:
            raise ValueError(f"conditions {first.name} and {one.name} are the same configuration")
    return tuple(kept.values())


def changed_by(condition: Condition) -> Values:
    """Return the condition's settings by dotted key."""
    settings = condition.settings.items()
    return {f"{TRAINING}.{name}": value for name, value in settings if name != registry.CODE}


def config_of(config: Config, condition: Condition) -> Config:
    """Return the configuration of that condition alone."""
    varied = registry.varied(config.tuned.spec, condition.settings)
    return config.with_objective(registry.load(varied))


# Factors and conditions


def factors_of(table: Mapping[str, Any]) -> Factors:
    """Return the factors of the table `[factors]`.

    A list holds values of the setting of that name; a table holds a table of settings for each
    level. Raises ValueError, naming the factor, on anything else.
    """
    return {name: _levels(f"factors.{name}", name, given) for name, given in table.items()}


def _levels(place: str, factor: str, given: Any) -> dict[str, Values]:
    if isinstance(given, list) and not any(isinstance(value, list | dict) for value in given):
        pairs = [(_as_name(value), {factor: value}) for value in given]
        given = each_once(pairs, place)
    if not given or not isinstance(given, dict) or set(map(type, given.values())) != {dict}:
        raise ValueError(f"{place}: expected a list of values, or a table of settings for a level")
    return {name: _settings(own, f"{place}.{name}") for name, own in given.items()}


def _as_name(value: Any) -> str:
    """Return `true`, `0`, `0.5`, `3e10`: a value as people write it."""
    if isinstance(value, float) and float(short := f"{value:g}") == value:
        return re.sub(r"e\+0*", "e", short)
    return value if isinstance(value, str) else format_value(value)


def _settings(given: Mapping[str, Any], place: str) -> Values:
    """Return settings of the objective; their keys may begin with `training.`.

    Raises ValueError on one that is set twice.
    """
    pairs = flattened(given, place)
    return each_once([(key.removeprefix(f"{TRAINING}."), value) for key, value in pairs], place)


def each_once(pairs: Iterable[tuple[str, Any]], place: str) -> Values:
    """Return the pairs as values. Raises ValueError on a key that is there twice."""
    values: Values = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{place}: {key} is given twice")
        values[key] = value
    return values


def _factorial(factors: Factors) -> Iterator[Condition]:
    """Yield every combination of levels, the last factor varying fastest.

    Raises ValueError if two factors set the same key.
    """
    for chosen in product(*(levels.items() for levels in factors.values())) if factors else ():
        pairs = [pair for _, own in chosen for pair in own.items()]
        settings = each_once(pairs, "[factors]")
        levels = {factor: level for factor, (level, _) in zip(factors, chosen, strict=True)}
        name = "_".join(f"{f.rpartition('.')[2]}{level}" for f, level in levels.items())
        yield _condition(name, settings, levels=levels)


def _listed(conditions: Sequence[Mapping[str, Any]]) -> Iterator[Condition]:
    """Yield the conditions that the file lists."""
    for number, entry in enumerate(conditions, 1):
        name = entry.get("name")
        if not isinstance(name, str):
            place = f"campaign.conditions, entry {number}"
            raise ValueError(f"{place}: expected a name, got {shown(name)}")
        given = {key: value for key, value in entry.items() if key != "name"}
        yield _condition(name, _settings(given, f"condition {name}"))


def _check_names(conditions: Sequence[Condition]) -> None:
    """Raise ValueError on an unsafe name, and on two that differ in case only or not at all."""
    seen: dict[str, str] = {}
    for name in (one.name for one in conditions):
        if not SAFE_NAME.fullmatch(name):
            raise ValueError(
                f"condition {shown(name)}: expected a name of 1 to 100 letters, digits and "
                ". _ + = -, beginning with a letter or digit"
            )
        if other := seen.get(name.lower()):
            raise ValueError(f"conditions {other!r} and {name!r} cannot be told apart: rename one")
        seen[name.lower()] = name


# The campaign's run


def campaign_matrix(config: Config, campaign: CampaignPlan) -> Matrix:
    """Return a campaign as one generation whose candidates are the conditions.

    Raises ValueError if a cap on evaluations does not pay for all of them.
    """
    points = (config.tuned.space.baseline,) * len(campaign.conditions)
    own = {"thresholds": config.thresholds, "campaign": campaign}
    return Matrix(config, "campaign", points, len(campaign.seeds), campaign.name, fields=own)


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


def runs_document(campaign: CampaignPlan) -> Values:
    """Return every condition and run as JSON."""
    runs = [name for _, _, name in campaign.runs]
    return {**campaign.model_dump(mode="json"), "total_runs": len(runs), "runs": runs}


def runs_page(campaign: CampaignPlan) -> list[str]:
    """Return the conditions and the names of their runs as Markdown."""
    rows = (
        (
            plain(one.name),
            plain(", ".join(f"{k} = {as_shown(v)}" for k, v in changed_by(one).items()) or "-"),
            "control" if one.control else "run",
        )
        for one in campaign.conditions
    )
    seeds = campaign.seeds
    return [
        *("## All runs", ""),
        f"{plain(campaign.name)}: {len(campaign.conditions)} conditions on {len(seeds)} seeds = "
        f"{campaign.evaluations} evaluations.",
        *("", *table(("condition", "sets", "type"), rows), ""),
        f"Seeds: {', '.join(map(str, seeds))}. A run is called {campaign.runs[0][2]}.",
    ]


def campaign_plan(
    config: Config, campaign: CampaignPlan, now: datetime, *, in_full: bool
) -> tuple[Values, str]:
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
    own = tier_page(plan, times, now)
    rule_of_thumb = None
    if own.search is not None:
        typical = own.search["ideal_hours"] * median(one.cost_factor for one in campaign.conditions)
        rule_of_thumb = typical + campaign.stagger_seconds * (at_once - 1) / 3600
    document = {
        **runs_document(campaign),
        "effective_parallelism": at_once,
        "rule_of_thumb_hours": rule_of_thumb,
        **own.model_dump(mode="json", include={"forecast", "cost", "checklist"}),
    }
    text = page_text(Page(times=times, evaluation=None, tiers=(own,)), in_full=in_full)
    return document, "\n".join([text, *runs_page(campaign)])
