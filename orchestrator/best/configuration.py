"""A point of a search in the forms that people take it over in: knobs, arguments, settings."""

import re
from dataclasses import dataclass
from typing import Any

from budgets.plain import shell_word
from budgets.plan import Plan
from objectives import registry
from objectives.api import SetupError
from objectives.rebased import essential, rebased
from objectives.space import Knob
from orchestrator.config import Config, to_toml
from orchestrator.records.planned import space_of, spec_of
from orchestrator.records.recommended import Point


@dataclass(frozen=True)
class KnobValue:
    """A knob's value beside the one that the search was compared with."""

    name: str
    value: float
    baseline: float
    moved: float  # of its range

    @property
    def is_moved(self) -> bool:
        return self.value != self.baseline


@dataclass(frozen=True)
class Configuration:
    """All forms of one point; those that there are none of are None, and `why` says why."""

    objective: str
    knobs: tuple[KnobValue, ...]
    arguments: tuple[str, ...] | None = None
    training: dict[str, Any] | None = None  # settings with which this is the baseline
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "knobs": [vars(knob) for knob in self.knobs],
            "arguments": None if self.arguments is None else list(self.arguments),
            "training": self.training,
        }

    def flags(self) -> str:
        """The arguments as a shell takes them. Raises ValueError where there are none."""
        if not self.arguments:
            why = self.why or "it is not started with arguments"
            raise ValueError(f"--flags: {self.objective} has none: {why}. See --json")
        return " ".join(map(shell_word, self.arguments))

    def toml(self, *comments: str) -> str:
        """A configuration file whose baseline this is. Raises ValueError where none has it."""
        if self.training is None:
            why = self.why or "no setting of it says where its knobs begin"
            raise ValueError(
                f"--toml: {self.objective} cannot have another baseline: {why}. A search takes "
                "what --json prints as a file for search.known"
            )
        values = {f"training.{name}": value for name, value in self.training.items()}
        if self.objective != Config().objective:  # `objectives.nanochat train` reads the file too
            values = {"objective": self.objective, **values}
        return _escaped(to_toml(values, *comments, *map(knob_line, self.knobs)))


def configuration_of(plan: Plan, point: Point) -> Configuration:
    """The point in all forms, as far as its objective can still be loaded."""
    space = space_of(plan)
    spec = spec_of(plan)
    knobs = tuple(_value(*own) for own in zip(space.knobs, point, strict=True))
    values = {knob.name: knob.value for knob in knobs}
    try:
        arguments = registry.load(spec).arguments(values)
        moved = rebased(spec, space, values) if any(k.is_moved for k in knobs) else spec
        training = None if moved is None else essential(moved)
    except (ValueError, SetupError) as error:
        return Configuration(spec.name, knobs, why=f"it cannot be loaded now: {error}")
    return Configuration(spec.name, knobs, arguments, training)


def _value(knob: Knob, unit: float) -> KnobValue:
    """At its baseline exactly that: on the way to the unit cube and back digits may get lost."""
    there, baseline = knob.encode(knob.baseline), knob.typed(knob.baseline)
    if unit == there:
        return KnobValue(knob.name, baseline, baseline, 0.0)
    value = knob.decode(unit)
    moved = (knob.encode(value) if knob.kind == "int" else unit) - there
    return KnobValue(knob.name, value, baseline, moved)


def knob_line(knob: KnobValue) -> str:
    """`lr = 0.0123 (baseline 0.01, moved +4% of its range)`."""
    return f"{knob.name} = {knob.value:.6g} (baseline {knob.baseline:.6g}, moved {moved(knob)})"


def moved(knob: KnobValue) -> str:
    """`+4% of its range`."""
    return f"{100 * knob.moved:+.3g}% of its range" if knob.is_moved else "not"


def _escaped(text: str) -> str:
    """Basic strings of TOML, which may say any character by its number."""
    return re.sub(r"[^\n]", lambda c: c[0] if c[0].isprintable() else f"\\U{ord(c[0]):08x}", text)
