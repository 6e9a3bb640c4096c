"""From conditions and factors as people write them to what a campaign evaluates."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from budgets.terms import Condition, Factor
from objectives import registry
from objectives.api import Objective, SetupError
from objectives.settings import shown
from orchestrator.config import (
    TABLES,
    TRAINING,
    Values,
    each_once,
    flattened,
)

Settings = Mapping[str, Any]

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}")
"""A name that any file system takes, and no shell mistakes for an option or a pattern."""

CONTROL = "_base"
"""What the names of controls end with."""

DEFAULT = "default"
"""The control that is the configuration itself."""

MOST_CELLS = 10_000


@dataclass(frozen=True)
class Level:
    """One value of a factor: its name, and what it sets."""

    name: str
    settings: Settings


@dataclass(frozen=True)
class Varied:
    """A factor with its levels in their order."""

    name: str
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Cell:
    """A configuration by name, before it is looked at what the objective makes of it."""

    name: str
    settings: Settings
    levels: Mapping[str, str] = field(default_factory=dict)
    control: bool = False


def factors_of(table: Mapping[str, Any]) -> tuple[Varied, ...]:
    """The factors of a table `[factors]`.

    A list holds values of the setting that the factor is named after; a table holds levels by name,
    each a table of settings. Raises ValueError, naming the factor, on anything else.
    """
    return tuple(Varied(name, tuple(_levels(name, given))) for name, given in table.items())


def _levels(factor: str, given: Any) -> Iterator[Level]:
    if isinstance(given, list) and given:
        for value in given:
            if isinstance(value, list | dict):
                raise ValueError(f"factors.{factor}: expected plain values, got {shown(value)}")
            yield Level(_as_name(value), dotted({factor: value}, f"factors.{factor}"))
    elif isinstance(given, dict) and given:
        for name, settings in given.items():
            if not isinstance(settings, dict):
                raise ValueError(
                    f"factors.{factor}.{name}: expected a table of settings, got {shown(settings)}"
                )
            yield Level(name, dotted(settings, f"factors.{factor}.{name}"))
    else:
        raise ValueError(
            f"factors.{factor}: expected a list of values, or a table of levels, got {shown(given)}"
        )


def dotted(settings: Settings, place: str) -> Values:
    """Settings by their full keys: one without a table is of `[training]`.

    Raises ValueError where one is set twice, in whatever words.
    """
    pairs = ((_in_full(key), value) for key, value in flattened(settings, place))
    return each_once(pairs, place)


def _in_full(key: str) -> str:
    return key if key.partition(".")[0] in TABLES else f"{TRAINING}.{key}"


def _as_name(value: Any) -> str:
    """`true` as people write it, 0.5 as it is, 3e10 without a sign or zeros that say nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    mantissa, e, exponent = (short if float(short) == value else repr(value)).partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def factorial(factors: Sequence[Varied]) -> tuple[Cell, ...]:
    """Every combination of levels, the last factor varying fastest; none without factors.

    Raises ValueError where two levels of a combination set the same thing, or there are too many.
    """
    if not factors:
        return ()
    if (count := prod(len(factor.levels) for factor in factors)) > MOST_CELLS:
        raise ValueError(f"[factors] make {count} combinations: expected {MOST_CELLS} at most")
    return tuple(
        _combined(factors, levels) for levels in product(*(factor.levels for factor in factors))
    )


def _combined(factors: Sequence[Varied], levels: Sequence[Level]) -> Cell:
    settings: dict[str, Any] = {}
    for factor, level in zip(factors, levels, strict=True):
        if both := [name for name in level.settings if name in settings]:
            raise ValueError(f"factors.{factor.name}: another factor sets {both[0]} too")
        settings |= level.settings
    pairs = [(f.name, level.name) for f, level in zip(factors, levels, strict=True)]
    name = "_".join(f"{_leaf(factor)}{level}" for factor, level in pairs)
    return Cell(name, settings, dict(pairs))


def _leaf(name: str) -> str:
    """The last word of a dotted name."""
    return name.rpartition(".")[2]


def controls(objective: Objective) -> tuple[Cell, ...]:
    """The configuration itself, and each of the objective's own controls."""
    own = ((f"{c.label.replace(' ', '-')}{CONTROL}", c.settings) for c in objective.controls())
    named = ((f"{DEFAULT}{CONTROL}", {}), *own)
    return tuple(Cell(name, dotted(sets, name), control=True) for name, sets in named)


def check_names(cells: Sequence[Cell]) -> None:
    """Raises ValueError on a name that is no file's, or that two have, as a file system sees it."""
    seen: dict[str, str] = {}
    for cell in cells:
        if not SAFE.fullmatch(cell.name):
            raise ValueError(
                f"condition {shown(cell.name)}: expected a name of 1 to 100 letters, digits and "
                ". _ + = -, beginning with a letter or digit"
            )
        other = seen.setdefault(cell.name.lower(), cell.name)
        if other is not cell.name:
            raise ValueError(
                f"conditions {other!r} and {cell.name!r} cannot be told apart: give one of them "
                "another name, or take it away"
            )
    if len(cells) > MOST_CELLS:
        raise ValueError(f"{len(cells)} conditions: expected {MOST_CELLS} at most")


def condition(objective: Objective, cell: Cell) -> Condition:
    """The cell as the objective has it. Raises ValueError, naming the cell, where it cannot."""
    settings = {key.removeprefix(f"{TRAINING}."): value for key, value in cell.settings.items()}
    try:
        varied = registry.load(registry.varied(objective.spec, settings))
    except ValueError as error:
        raise ValueError(f"condition {cell.name}: {error}") from error
    code = varied.spec.settings.get(registry.CODE)
    if code != objective.spec.settings.get(registry.CODE):  # another program, held fast as ours is
        settings |= {registry.CODE: code}
    return Condition(
        name=cell.name,
        settings=settings,
        knobs=varied.space.decode(varied.space.baseline),
        length=_length(objective, varied),
        levels=dict(cell.levels),
        control=cell.control,
    )


def _length(objective: Objective, varied: Objective) -> float:
    """How long an evaluation of `varied` takes, in evaluations of `objective`, by exact FLOPs.

    1 where FLOPs do not say it, or hang on data that is not there.
    """
    try:
        own, base = varied.flops(), objective.flops()
    except SetupError:
        return 1.0
    if own is None or base is None or not base.total or not own.total:
        return 1.0
    return own.total / base.total


def agreed(factors: Sequence[Varied]) -> tuple[Factor, ...]:
    """The factors as a campaign's terms have them."""
    return tuple(
        Factor(name=factor.name, levels=tuple(level.name for level in factor.levels))
        for factor in factors
    )
