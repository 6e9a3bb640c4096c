"""Every setting of a function that is an objective, with its checks."""

from math import inf
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from objectives.programs.declared import DeclaredKnob


def _absolute(directory: str) -> str:
    """The same directory from anywhere: an evaluation runs in one of its own."""
    if not directory or not directory.isprintable():
        raise ValueError("expected a directory's name")
    try:
        return str(Path(directory).expanduser().absolute())
    except RuntimeError as error:  # ~somebody
        raise ValueError(str(error)) from error


def _positive(budget: Any) -> Any:
    """A rung scales it; a whole one stays whole."""
    if budget is None:
        return None
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not is_number or not 0 < budget < inf:
        raise ValueError("expected a positive number")
    return budget


def _keyword_arguments(fixed: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name, value in fixed.items():
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name of a keyword argument")
        if _has_null(value):
            raise ValueError(f"{name}: expected no null, which a configuration cannot hold")
    return fixed


def _has_null(value: JsonValue) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


class FunctionConfig(BaseModel):
    """What a user may set for `python:module:function`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    knobs: dict[str, DeclaredKnob] = Field(default={})  # to search; none is a mistake
    directory: Annotated[str, AfterValidator(_absolute)] = Field(".", validate_default=True)
    budget: Annotated[int | float | None, BeforeValidator(_positive)] = None  # third argument
    fixed: Annotated[dict[str, JsonValue], AfterValidator(_keyword_arguments)] = Field(default={})
    sources: tuple[str, ...] = ()  # patterns of what else decides a score, from `directory` on
    code: str | None = Field(default=None, pattern=r"\A[0-9a-f]{64}\z")  # None: as it is now
