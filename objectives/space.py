"""Named knobs and the unit cube: CMA-ES only ever sees [0, 1]^d.

`Knob` bounds a knob in its scale's x-space, `DeclaredKnob` in the knob's own unit, as people do.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    model_validator,
)

from objectives.settings import in_words

Kind = Literal["linear", "log10", "sigmoid01", "tanh11", "int"]

NAME = r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\z"  # of a knob: for options, tables and files
MOST_BEYOND = 1e-14  # share of a value by which rounding may move the end of a range


_SCALES: dict[Kind, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "linear": (float, float),
    "log10": (lambda x: 10.0**x, math.log10),
    "sigmoid01": (lambda x: 1.0 / (1.0 + math.exp(-x)), lambda v: math.log(v / (1.0 - v))),
    "tanh11": (math.tanh, math.atanh),
    "int": (float, float),
}
"""From x-space, where a step means the same everywhere, to the knob's unit, and back."""


class Knob(BaseModel):
    """One searched parameter.

    `low` and `high` bound its x-space (for `log10` the exponent, for `sigmoid01` and `tanh11` the
    argument); `baseline` is a value in the knob's own unit. An `int` knob takes every `step`-th
    whole number from `low` on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    name: str = Field(pattern=NAME)
    kind: Kind
    low: float
    high: float
    step: int = Field(default=1, ge=1, exclude_if=lambda step: step == 1)
    baseline: float

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"knob {self.name}: {self.low:g} to {self.high:g} is not a range")
        if self.kind != "int" and self.step != 1:
            raise ValueError(f"knob {self.name}: only an int knob has a step")
        for value in (self.low, self.high, self.baseline) if self.kind == "int" else ():
            if value % 1 or (value - self.low) % self.step:
                raise ValueError(
                    f"knob {self.name}: {value:g} must be a whole number, and lie whole steps of "
                    f"{self.step} from low {self.low:g}"
                )
        try:
            inside = 0.0 <= self.encode(self.baseline) <= 1.0
        except (ValueError, ArithmeticError):  # log10(0), atanh(1): no point of the x-space
            inside = False
        if not inside:
            low, high = map(_SCALES[self.kind][0], (self.low, self.high))
            raise ValueError(
                f"knob {self.name}: baseline {self.baseline} lies outside its bounds, "
                f"{low:.6g} to {high:.6g}"
            )
        return self

    @property
    def _values(self) -> float:
        """The number of values of an int knob."""
        return (self.high - self.low) // self.step + 1

    def decode(self, unit: float) -> float:
        """Return the knob's value at `unit` in [0, 1], of an int knob an int."""
        if self.kind == "int":  # equal shares of the unit interval, one per value
            number = min(math.floor(unit * self._values), self._values - 1)
            return self.typed(self.low + self.step * number)
        x = self.low + unit * (self.high - self.low)
        return _SCALES[self.kind][0](min(x, self.high))  # rounding may step over the edge

    def typed(self, value: float) -> float:
        """Return the value in the knob's type: of an int knob an int."""
        return int(value) if self.kind == "int" else value

    def rounded(self, value: float) -> float:
        """Return the value as a program gets it: with 12 digits where that stays in the range.

        0.3 comes back from the unit cube as 0.29999999999999993.
        """
        if self.kind == "int":
            return int(value)
        rounded = float(f"{value:.12g}")
        beyond = max(self.decode(0.0) - rounded, rounded - self.decode(1.0))
        return value if beyond > MOST_BEYOND * abs(rounded) else rounded

    def encode(self, value: float) -> float:
        """Return the coordinate at which `decode` gives `value`, in [0, 1] if it is in bounds."""
        if self.kind == "int":
            return ((value - self.low) / self.step + 0.5) / self._values
        unit = (_SCALES[self.kind][1](value) - self.low) / (self.high - self.low)
        edge = min(max(unit, 0.0), 1.0)
        return edge if abs(unit - edge) < 1e-9 else unit  # a bound is inside despite rounding


class DeclaredKnob(BaseModel):
    """One entry of a setting `knobs`: `lr = {kind = "log10", min = 1e-4, max = 0.1, ...}`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )

    kind: Kind = "linear"
    min: float
    max: float
    step: int = Field(default=1, ge=1, exclude_if=lambda step: step == 1)  # of an int knob
    baseline: float

    @field_serializer("min", "max", "baseline")
    def _whole_of_an_int_knob(self, value: float) -> int | float:
        return int(value) if self.kind == "int" and value.is_integer() else value

    def named(self, name: str) -> Knob:
        """Return the knob of that name. Raises ValueError, naming it, where it cannot be."""
        own = {"name": name, "kind": self.kind, "step": self.step, "baseline": self.baseline}
        try:
            low, high = map(_SCALES[self.kind][1], (self.min, self.max))
            if low >= high:
                raise ValueError
        except (ValueError, ArithmeticError):  # log10(0), atanh(1)
            raise ValueError(
                f"knob {name}: {self.min:g} to {self.max:g} is not a range of a {self.kind} knob"
            ) from None
        try:
            return Knob.model_validate({"low": low, "high": high, **own})
        except ValidationError as error:
            raise ValueError(in_words(error)) from None


class SearchSpace(BaseModel):
    """An ordered set of knobs; a point is one coordinate in [0, 1] per knob, in that order."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    knobs: tuple[Knob, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [knob.name for knob in self.knobs]
        if len(set(names)) < len(names):
            raise ValueError(f"knob names must differ, got {', '.join(names)}")
        return self

    @classmethod
    def declared(cls, knobs: Mapping[str, DeclaredKnob]) -> Self:
        """Return the knobs in their order. Raises ValueError, naming an impossible one."""
        if not knobs:
            raise ValueError(
                "knobs: expected at least one to search, in a file under [training]: "
                'knobs.lr = { kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }'
            )
        return cls(knobs=tuple(knob.named(name) for name, knob in knobs.items()))

    @property
    def dimension(self) -> int:
        return len(self.knobs)

    @property
    def baseline(self) -> tuple[float, ...]:
        """The default configuration as a point of the unit cube."""
        return tuple(knob.encode(knob.baseline) for knob in self.knobs)

    def decode(self, point: Sequence[float]) -> dict[str, float]:
        """Return values by name at `point`. Raises ValueError if it is not a point of the cube."""
        for knob, unit in zip(self.knobs, point, strict=True):
            if not 0.0 <= unit <= 1.0:
                raise ValueError(f"knob {knob.name}: coordinate {unit} lies outside [0, 1]")
        return {k.name: k.decode(unit) for k, unit in zip(self.knobs, point, strict=True)}

    def rounded(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return each value as a program gets it. Raises KeyError on a missing knob."""
        return {knob.name: knob.rounded(values[knob.name]) for knob in self.knobs}

    def typed(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values in their knobs' types. Raises KeyError on an unknown knob."""
        knobs = {knob.name: knob for knob in self.knobs}
        return {name: knobs[name].typed(float(value)) for name, value in values.items()}

    def encode(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """Return the point at which `decode` gives `values`. Raises KeyError on a missing knob."""
        return tuple(knob.encode(values[knob.name]) for knob in self.knobs)
