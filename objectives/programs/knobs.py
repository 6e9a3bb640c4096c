"""Knobs as people declare them: bounds in the knob's own unit."""

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    model_validator,
)

from objectives.settings import in_words, unknown
from objectives.space import NAME, Kind, Knob, SearchSpace, to_x

WITHIN = {"log10": "above 0", "sigmoid01": "between 0 and 1", "tanh11": "between -1 and 1"}
"""What values a kind of knob has; of the others any."""


class DeclaredKnob(BaseModel):
    """One entry of a setting `knobs`: `lr = {kind = "log10", min = 1e-4, max = 0.1, ...}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    kind: Kind = "linear"
    min: float
    max: float
    step: int = Field(default=1, ge=1, exclude_if=lambda step: step == 1)  # of an int knob
    baseline: float

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        for name in given if isinstance(given, Mapping) else ():
            if name not in cls.model_fields:
                raise unknown("key", str(name), cls.model_fields)
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("min", "max", "baseline"):
            value = getattr(self, name)
            try:
                to_x(self.kind, value)
            except (ValueError, ArithmeticError):
                raise ValueError(
                    f"{name} {value:g} of a {self.kind} knob must be {WITHIN[self.kind]}"
                ) from None
        if not self.min < self.max:
            raise ValueError(f"min {self.min:g} must be below max {self.max:g}")
        return self

    @field_serializer("min", "max", "baseline")
    def _whole_of_an_int_knob(self, value: float) -> int | float:
        return int(value) if self.kind == "int" and value.is_integer() else value

    def named(self, name: str) -> Knob:
        """The knob of that name. Raises ValueError, naming it, where it cannot be."""
        if not re.fullmatch(NAME, name):
            raise ValueError(
                "knobs: expected names of 1 to 64 letters, digits and . _ -, without dashes in "
                f"front, got {name[:80]!r}"
            )
        try:
            return Knob(
                name=name,
                kind=self.kind,
                low=to_x(self.kind, self.min),
                high=to_x(self.kind, self.max),
                step=self.step,
                baseline=self.baseline,
            )
        except ValidationError as error:
            raise ValueError(in_words(error).replace("knob ", "knobs.", 1)) from error


def space_of(knobs: Mapping[str, DeclaredKnob]) -> SearchSpace:
    """The declared knobs in their order. Raises ValueError, naming the one that cannot be."""
    if not knobs:
        raise ValueError(
            "knobs: expected at least one to search, such as "
            'lr = { kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }'
        )
    return SearchSpace(knobs=tuple(knob.named(name) for name, knob in knobs.items()))


MOST_BEYOND = 1e-14
"""As a share of a value: how far the way through the unit cube moves the end of a range."""


def as_given(space: SearchSpace, values: Mapping[str, float]) -> dict[str, float]:
    """Each value as a program is given it, in the space's order: whole numbers for `int` knobs.

    Others have 12 digits where that stays in the range: 0.3 comes back from the unit cube as
    0.29999999999999993, which nobody asked for. Raises ValueError unless there is one value for
    each knob, and no other.
    """
    names = {knob.name for knob in space.knobs}
    if values.keys() != names:
        missing, unknown = sorted(names - values.keys()), sorted(values.keys() - names)
        raise ValueError(f"expected its knobs: missing {missing}, unknown {unknown}")
    return {knob.name: _rounded(knob, values[knob.name]) for knob in space.knobs}


def _rounded(knob: Knob, value: float) -> float:
    if knob.kind == "int":
        return int(value)
    rounded = float(f"{value:.12g}")
    beyond = max(knob.decode(0.0) - rounded, rounded - knob.decode(1.0))
    return value if beyond > MOST_BEYOND * abs(rounded) else rounded


def as_text(space: SearchSpace, values: Mapping[str, float]) -> dict[str, str]:
    """The same as arguments say it."""
    return {name: repr(value) for name, value in as_given(space, values).items()}
