"""From a name and settings to an objective, and what is known of a kind before one is loaded."""

import re
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from objectives.analytic import FUNCTIONS
from objectives.api import Objective, ObjectiveSpec
from objectives.settings import unknown

ANALYTIC = tuple(FUNCTIONS)
FUNCTION, CALLABLE = PREFIXES = ("python:", "call:")
"""What the names of functions begin with: `python:module:function`, or handed over in Python."""

CODE = "code"
"""The setting that has the SHA-256 of each of a program's sources."""

CHECKOUT = "checkout"
"""The setting that makes `nanochat` the one in a directory of the user's."""

MOVES_CODE = frozenset({"argv", "checkout", "directory", "sources"})
"""Settings that say which files a program is: when one differs, its code is pinned again."""

_KINDS = {
    "nanochat": ("nanochat.objective", "NanochatObjective", "NanochatConfig"),
    "nanochat checkout": ("checkout", "CheckoutObjective", "CheckoutConfig"),
    "command": ("command", "CommandObjective", "CommandConfig"),
    FUNCTION: ("function", "FunctionObjective", "FunctionConfig"),
    CALLABLE: ("callable", "CallableObjective", "CallableConfig"),
    **dict.fromkeys(ANALYTIC, ("analytic", "AnalyticObjective", "AnalyticSettings")),
}
"""Module and class of each kind, and the model of its settings; imported when one is asked for."""


class Named(NamedTuple):
    """What may be said of an objective's settings besides their values."""

    presets: Mapping[str, Mapping[str, Any]] = {}  # settings by the name of all of them
    profiles: Mapping[str, Mapping[str, Any]] = {}
    settings: tuple[str, ...] = ()  # that it has
    aside: tuple[str, ...] = ()  # that only its training by itself has


def kind(spec: ObjectiveSpec) -> str:
    """Return what is tuned, in words: our own nanochat and a user's checkout have one name."""
    is_checkout = spec.name == "nanochat" and CHECKOUT in spec.settings
    return "nanochat checkout" if is_checkout else spec.name


def _kind(name: str, settings: Collection[str]) -> tuple[Any, type[BaseModel]]:
    """Return the class and the model of its settings. Raises ValueError on an unknown name."""
    key = "nanochat checkout" if name == "nanochat" and CHECKOUT in settings else name
    key = next((prefix for prefix in PREFIXES if name.startswith(prefix)), key)
    if key not in _KINDS:
        known = ("nanochat", "command", f"{FUNCTION}MODULE:FUNCTION", *ANALYTIC)
        raise unknown("objective", name, known)
    module, *names = _KINDS[key]
    objective, model = (getattr(import_module(f"objectives.{module}"), one) for one in names)
    return objective, model


def load(spec: ObjectiveSpec) -> Objective:
    """Return the objective of `spec`. Raises ValueError on an unknown name or a wrong setting."""
    objective, _ = _kind(spec.name, spec.settings)
    has_own_name = spec.name.startswith(PREFIXES) or spec.name in ANALYTIC
    own = (spec.name,) if has_own_name else ()
    made: Objective = objective.from_settings(*own, spec.settings)
    return made


def named(name: str, given: Collection[str] = ()) -> Named:
    """Return what the objective of that name has, with the settings `given`.

    Raises ValueError on an unknown one.
    """
    settings = tuple(_kind(name, given)[1].model_fields)
    if name != "nanochat" or CHECKOUT in given:
        return Named(settings=settings)
    from objectives.nanochat.config import PRESETS, PROFILES, RunConfig

    return Named(PRESETS, PROFILES, (*settings, CHECKOUT), tuple(RunConfig.model_fields))


def varied(spec: ObjectiveSpec, variant_settings: Mapping[str, Any]) -> ObjectiveSpec:
    """Return `spec` with a variant's settings laid over its own. Raises ValueError as `load` does.

    A table is laid over a table name by name; `fixed.depth` is one name of the table `fixed`.
    Where the variant names other files, they are pinned.
    """
    settings = dict(spec.settings)
    if not MOVES_CODE.isdisjoint(variant_settings):
        settings.pop(CODE, None)
    for key, value in variant_settings.items():
        table, _, name = key.partition(".")
        own = settings.get(table)
        if name and isinstance(own, Mapping):
            settings[table] = {**own, name: value}
        elif isinstance(own, Mapping) and isinstance(value, Mapping) and key != CODE:
            settings[key] = {**own, **value}
        else:
            settings[key] = value
    return load(ObjectiveSpec(name=spec.name, settings=settings)).spec


def unusual(spec: ObjectiveSpec) -> dict[str, Any]:
    """Return the settings that differ from their defaults.

    Pinned code is left out, except a handed-over function's, which names its file. Raises
    ValueError or SetupError as `load` does.
    """
    if kind(spec) == "nanochat" or spec.name in ANALYTIC:
        usual = load(ObjectiveSpec(name=spec.name)).spec.settings
    else:
        fields = _kind(spec.name, spec.settings)[1].model_fields.items()
        found = {
            n: f.get_default(call_default_factory=True) for n, f in fields if not f.is_required()
        }
        usual = to_jsonable_python(found, exclude_none=True)
    left_out = () if spec.name.startswith(CALLABLE) else (CODE,)
    return {
        name: value
        for name, value in spec.settings.items()
        if name not in left_out and not (name in usual and usual[name] == value)
    }


def short_name(spec: ObjectiveSpec) -> str:
    """Return a name for files and runs: lower case, without a colon, 40 characters at most.

    A function's has its module, a command's the fixed part of what it starts.
    """
    name = kind(spec).removeprefix(FUNCTION).removeprefix(CALLABLE)
    if name == "command":
        words = (Path(word).name for word in spec.settings.get("argv", ()) if "{" not in word)
        name = "-".join((name, *(word.removesuffix(".py").lstrip("-") for word in words)))
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower())[-40:].strip("-._") or "function"
