"""From settings that a user typed to a checked model, or one line about what is wrong with them."""

import json
import os
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from objectives import secrets

Model = TypeVar("Model", bound=BaseModel)

# settings of other tools that say whether more or less is better
DIRECTIONS = {"direction", "goal", "maximise", "maximize", "minimise", "minimize"}


class Settings(BaseModel):
    """What a user may set of an objective."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # settings by the name of all of them
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    alone: ClassVar[tuple[str, ...]] = ()  # settings that only its training by itself has


def parse(model: type[Model], settings: Mapping[str, Any], owner: str) -> Model:
    """Return `settings` as a `model`. Raises ValueError, naming each wrong setting and value."""
    for name in settings:
        if name not in model.model_fields:
            raise unknown(f"{owner} setting", name, model.model_fields)
        check_writable(f"{owner} setting {name}", settings[name])
    try:  # as JSON: a list is a tuple, but "3" and true are not numbers
        text = json.dumps(settings, default=_as_json)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner} settings: {error}") from error
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(f"{owner} settings: {in_words(error)}") from error


def _as_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else os.fspath(value)


def check_writable(place: str, value: Any) -> None:
    """Raises ValueError, without repeating it, on a secret: settings are written to the ledger."""
    if isinstance(value, str) and secrets.are_in(value):
        raise ValueError(
            f"{place} is a URL with a user name or a password in it, or holds an access token, and "
            "settings are written to the ledger: give it to the program by an environment variable "
            "(named in pass_environment, where the program is not ours) or ~/.netrc"
        )
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(inner, Collection) and not isinstance(inner, str):
        for part in inner:
            check_writable(place, part)


def unknown(kind: str, name: str, known: Collection[str]) -> ValueError:
    """Return the error about a name that is not `known`: it lists those, and the nearest first."""
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if name in DIRECTIONS:
        hint = ' Where a higher score is better, say direction = "maximize" above all tables.'
    return ValueError(f"unknown {kind} {name!r}.{hint} Expected one of {', '.join(known)}")


def in_words(error: ValidationError) -> str:
    """Return what a model found wrong, in one line."""
    faults = (one for one in error.errors() if one["type"] != "default_factory_not_called")
    return "; ".join(fault_in_words(one, ".".join(map(str, one["loc"]))) for one in faults)


def fault_in_words(fault: ErrorDetails, place: str) -> str:
    """Return one fault and the value that came; `place` is what the user calls it."""
    message, given = fault["msg"].removeprefix("Value error, "), fault["input"]
    if not fault["loc"]:
        return message
    if fault["type"] == "missing":
        return f"{place}: missing; set it in a file or with --set"
    if fault["type"] in {"int_type", "float_type"}:
        message = "expected a whole number" if fault["type"] == "int_type" else "expected a number"
    if fault["type"] in {"tuple_type", "list_type"}:
        message = "expected a list"
    if fault["type"] == "string_pattern_mismatch":
        message = f"expected text of the form {fault['ctx']['pattern']}"
    return f"{place}: {message}, got {shown(given)}"


def shown(value: object) -> str:
    """Return a value as a message repeats it."""
    return cut(repr(value), 200)


def cut(text: str, most: int) -> str:
    """Return `text`, cut after `most` characters."""
    return text if len(text) <= most else f"{text[:most]}..."
