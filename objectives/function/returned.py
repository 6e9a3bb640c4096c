"""What a user's function may answer with, as a `Measurement`."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from pydantic import ValidationError

from objectives.api import Measurement, NoScoreError
from objectives.settings import cut, in_words

EXPECTED = "a number, a Measurement, or a mapping with its fields"


def measurement_of(value: object, train_seconds: float) -> Measurement:
    """`value` as a measurement; one without its own time took `train_seconds`.

    Raises NoScoreError, naming what came. Not a number is a score too: the runner calls it `nan`.
    """
    if isinstance(value, Measurement):
        return value
    if isinstance(value, Mapping):
        fields = {"train_seconds": train_seconds, **_plain(value)}
        try:
            return Measurement.model_validate(fields)
        except ValidationError as error:
            raise NoScoreError(f"the function returned a mapping: {in_words(error)}") from error
    number = _plain(value)
    if isinstance(number, Real) and not isinstance(number, bool):
        try:
            return Measurement(score=float(number), train_seconds=train_seconds)
        except OverflowError:
            raise NoScoreError("the function returned a number that no float can hold") from None
    raise NoScoreError(f"the function returned {_name(value)}: expected {EXPECTED}")


def _plain(value: Any) -> Any:
    """Without arrays of no dimension, as numpy and torch make one of a number."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value


def _name(value: object) -> str:
    if value is None:
        return "None"
    text = repr(value) if isinstance(value, str | bool) else type(value).__name__
    return cut(text, 60)
