"""From settings a person typed to a checked model, or one line about what is wrong with them."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from objectives import secrets

Model = TypeVar("Model", bound=BaseModel)


def parse(model: type[Model], settings: Mapping[str, Any], owner: str) -> Model:
    """`settings` as a `model`. Raises ValueError, naming each wrong setting and what came."""
    for name in settings:
        if name not in model.model_fields:
            raise unknown(f"{owner} setting", name, model.model_fields)
        check_writable(f"{owner} setting {name}", settings[name])
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        raise ValueError(f"{owner} settings: {in_words(error)}") from error


def check_writable(place: str, value: Any) -> None:
    """Settings decide what is run, so they go on record: raises ValueError on a secret among them.

    The message does not repeat it.
    """
    if isinstance(value, str) and secrets.in_url(value):
        raise ValueError(
            f"{place} is a URL with a user name or a password in it, and settings are written to "
            "the ledger: expected the URL without them. Give them to the program that reads it, "
            "by its environment variable or ~/.netrc"
        )
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(inner, Collection) and not isinstance(inner, str):
        for part in inner:
            check_writable(place, part)


def unknown(kind: str, name: str, known: Collection[str]) -> ValueError:
    """The error about a name that is none of the `known` ones: it lists them and the nearest."""
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"unknown {kind} {name!r}.{hint} Expected one of {', '.join(known)}")


def in_words(error: ValidationError) -> str:
    """What a model found wrong, in one line."""
    faults = []
    for fault in error.errors():
        message = fault["msg"].removeprefix("Value error, ")
        if fault["loc"]:
            place = ".".join(map(str, fault["loc"]))
            message = f"{place}: {message}, got {fault['input']!r}"
        faults.append(message)
    return "; ".join(faults)
