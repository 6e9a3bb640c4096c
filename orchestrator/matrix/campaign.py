"""A campaign: conditions on the same seeds, in one ledger.

The conditions are those listed in a configuration, the full factorial of its factors, and the
controls: the configuration itself and the objective's own.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import floor, prod
from typing import Any, NamedTuple

from budgets.plan import CampaignPlan, Condition, Envelope, Factor
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective, SetupError
from objectives.settings import shown
from orchestrator.capacity import Pace
from orchestrator.config import (
    TABLES,
    TRAINING,
    Config,
    Values,
    each_once,
    flattened,
    resolve,
)
from orchestrator.matrix.matrix import Matrix
from orchestrator.plan.resolve import check_run_id
from orchestrator.records.objective import Point

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}")
"""Safe for any file system and shell."""

CONTROL = "_base"  # suffix of a control's name
DEFAULT = "default"  # the control that is the configuration itself

MOST_CELLS = 10_000

Factors = Mapping[str, Mapping[str, Values]]
"""The settings of each level, by the names of factor and level, in their order."""


class Cell(NamedTuple):
    """A condition as configured, before the objective has read its settings."""

    name: str
    settings: Values  # of the objective
    levels: Mapping[str, str] = {}  # by factor
    control: bool = False


def campaign_name(config: Config) -> str:
    """Return the campaign's name, by default its file's. Raises ValueError on an unsafe one."""
    name = None if config.campaign is None else config.campaign.name
    if name is None:
        stem = "campaign" if config.file is None else config.file.stem.lower()
        name = re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._") or "campaign"
    check_run_id(name, "[campaign] name")
    return name


def campaign_from(config: Config) -> CampaignPlan:
    """Return the plan's part of a campaign. Raises ValueError, naming the condition."""
    assert config.campaign is not None, "the caller has checked it"
    campaign, factors = config.campaign, factors_of(config.factors)
    cells = [*_listed(campaign.conditions), *_factorial(factors)]
    if not cells:
        raise ValueError(
            "a campaign needs conditions: [[campaign.conditions]] with a name each, or [factors]"
        )
    if campaign.controls:
        cells += _controls(config.tuned)
    if len(cells) > MOST_CELLS:
        raise ValueError(f"{len(cells)} conditions: expected {MOST_CELLS} at most")
    _check_names(cells)
    return CampaignPlan(
        name=campaign_name(config),
        conditions=_conditions(config, cells),
        seeds=tuple(campaign.seeds),
        factors=tuple(Factor(name=own, levels=tuple(levels)) for own, levels in factors.items()),
        parallel=campaign.parallel,
        max_workers=campaign.max_workers,
        direction=config.direction,
        stagger_seconds=campaign.stagger_seconds,
    )


def _conditions(config: Config, cells: Sequence[Cell]) -> tuple[Condition, ...]:
    """Return the cells as the objective reads them; a cell equal to a control is that control.

    Raises ValueError, naming the cell, on a wrong setting and on two equal cells.
    """
    kept = dict[str, Condition]()
    for cell in cells:
        settings = dict(cell.settings)
        try:
            varied = registry.load(registry.varied(config.tuned.spec, settings))
        except ValueError as error:
            raise ValueError(f"condition {cell.name}: {error}") from error
        code = varied.spec.settings.get(registry.CODE)
        if code != config.tuned.spec.settings.get(registry.CODE):  # another program's sources
            settings[registry.CODE] = code
        identity = json.dumps(varied.spec.settings, sort_keys=True, default=str)
        if (first := kept.get(identity)) is None:
            kept[identity] = Condition(
                name=cell.name,
                settings=settings,
                knobs=varied.space.decode(varied.space.baseline),
                cost_factor=_length(config.tuned, varied),
                levels=dict(cell.levels),
                control=cell.control,
            )
        elif cell.control:
            kept[identity] = first.model_copy(update={"control": True})
        else:
            raise ValueError(f"conditions {first.name} and {cell.name} are the same configuration")
    return tuple(kept.values())


def changed_by(condition: Condition) -> Values:
    """Return the condition's settings by dotted key."""
    settings = condition.settings.items()
    return {f"{TRAINING}.{name}": value for name, value in settings if name != registry.CODE}


def config_of(config: Config, condition: Condition) -> Config:
    """Return the configuration of that condition alone."""
    return resolve(replace(config.layers, cell=(condition.name, changed_by(condition))))


def _length(objective: Objective, varied: Objective) -> float:
    """Return the FLOPs of `varied` over those of `objective`; 1 if they are not known."""
    try:
        own, base = varied.flops(), objective.flops()
    except SetupError:
        return 1.0
    if own is None or base is None or not base.total or not own.total:
        return 1.0
    return own.total / base.total


# Factors and conditions


def factors_of(table: Mapping[str, Any]) -> Factors:
    """Return the factors of the table `[factors]`.

    A list holds values of the setting of that name; a table holds a table of settings for each
    level. Raises ValueError, naming the factor, on anything else.
    """
    return {
        name: each_once(_levels(f"factors.{name}", name, given), f"factors.{name}")
        for name, given in table.items()
    }


def _levels(place: str, factor: str, given: Any) -> Iterator[tuple[str, Values]]:
    if not given or not isinstance(given, list | dict):
        raise ValueError(
            f"{place}: expected a list of values, or a table of levels, got {shown(given)}"
        )
    if isinstance(given, dict):
        for name, settings in given.items():
            if not isinstance(settings, dict):
                raise ValueError(
                    f"{place}.{name}: expected a table of settings, got {shown(settings)}"
                )
            yield name, _settings(settings, f"{place}.{name}")
        return
    for value in given:
        if isinstance(value, list | dict):
            raise ValueError(f"{place}: expected plain values, got {shown(value)}")
        yield _as_name(value), _settings({factor: value}, place)


def _as_name(value: Any) -> str:
    """Return `true`, `0.5`, `3e10`: a value as people write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    mantissa, e, exponent = (short if float(short) == value else repr(value)).partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def _settings(given: Mapping[str, Any], place: str) -> Values:
    """Return settings of the objective; their keys may begin with `training.`.

    Raises ValueError on a key of another table, and on one that is set twice.
    """
    pairs = []
    for key, value in flattened(given, place):
        if key.partition(".")[0] in TABLES and not key.startswith(f"{TRAINING}."):
            raise ValueError(
                f"{place}: {key} is the same for all conditions: expected keys of [{TRAINING}]"
            )
        pairs.append((key.removeprefix(f"{TRAINING}."), value))
    return each_once(pairs, place)


def _factorial(factors: Factors) -> Iterator[Cell]:
    """Yield every combination of levels, the last factor varying fastest.

    Raises ValueError if two factors set the same key, or there are too many combinations.
    """
    if (count := prod(len(levels) for levels in factors.values())) > MOST_CELLS:
        raise ValueError(f"[factors] make {count} combinations: expected {MOST_CELLS} at most")
    for chosen in product(*(levels.items() for levels in factors.values())) if factors else ():
        settings: Values = {}
        for factor, (_, own) in zip(factors, chosen, strict=True):
            if both := [key for key in own if key in settings]:
                raise ValueError(f"factors.{factor}: another factor sets {both[0]} too")
            settings |= own
        levels = {factor: level for factor, (level, _) in zip(factors, chosen, strict=True)}
        name = "_".join(f"{f.rpartition('.')[2]}{level}" for f, level in levels.items())
        yield Cell(name, settings, levels)


def _controls(objective: Objective) -> Iterator[Cell]:
    """Yield the configuration itself and the objective's own controls."""
    yield Cell(f"{DEFAULT}{CONTROL}", {}, control=True)
    for one in objective.controls():
        yield Cell(f"{one.label.replace(' ', '-')}{CONTROL}", dict(one.settings), control=True)


def _listed(conditions: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    """Yield the conditions that the file lists."""
    for number, entry in enumerate(conditions, 1):
        name = entry.get("name")
        if not isinstance(name, str):
            place = f"campaign.conditions, entry {number}"
            raise ValueError(f"{place}: expected a name, got {shown(name)}")
        given = {key: value for key, value in entry.items() if key != "name"}
        yield Cell(name, _settings(given, f"condition {name}"))


def _check_names(cells: Sequence[Cell]) -> None:
    """Raise ValueError on an unsafe name, and on two that differ in case only or not at all."""
    seen: dict[str, str] = {}
    for cell in cells:
        if not SAFE_NAME.fullmatch(cell.name):
            raise ValueError(
                f"condition {shown(cell.name)}: expected a name of 1 to 100 letters, digits and "
                ". _ + = -, beginning with a letter or digit"
            )
        if (folded := cell.name.lower()) in seen:
            raise ValueError(
                f"conditions {seen[folded]!r} and {cell.name!r} cannot be told apart: rename one"
            )
        seen[folded] = cell.name


# The campaign's run


def campaign_matrix(config: Config, campaign: CampaignPlan) -> Matrix:
    """Return a campaign as one generation whose candidates are the conditions.

    Raises ValueError if a cap on evaluations does not pay for all of them.
    """
    check_run_id(campaign.name)
    conditions, seeds = len(campaign.conditions), len(campaign.seeds)
    shape = Envelope(population=conditions, generations=1, seeds_per_candidate=seeds)
    most = config.budget.max_evals
    if most is not None and most < shape.evaluations:
        raise ValueError(
            f"--max-evals {most} does not pay for the campaign's {shape.evaluations} evaluations: "
            "take fewer conditions or seeds"
        )
    title = (
        f"Campaign {campaign.name}: {conditions} conditions on {seeds} seeds, "
        f"{shape.evaluations} evaluations."
    )
    own = {"thresholds": config.thresholds, "campaign": campaign}
    points = points_of(campaign, config.tuned.space.baseline)
    return Matrix(config, "campaign", points, shape, title, campaign.name, fields=own)


def points_of(campaign: CampaignPlan, baseline: Point) -> tuple[Point, ...]:
    """Return the point of each condition: its own, else `baseline`."""
    return tuple(baseline if c.point is None else c.point for c in campaign.conditions)


class Staggered(Pace):
    """Admits one more evaluation in flight every `seconds`, by a monotonic clock."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._began: float | None = None

    def admits(self, state: RunState) -> bool:
        if not self._seconds:
            return True
        at = self._now()
        if self._began is None:
            self._began = at
        return len(state.accounts.holds) < 1 + floor((at - self._began) / self._seconds)
