"""From a name and settings to an objective, and what is known of a kind before one is loaded."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from objectives.analytic import FUNCTIONS
from objectives.api import Objective, ObjectiveSpec
from objectives.settings import Settings, unknown

ANALYTIC = tuple(FUNCTIONS)
FUNCTION, CALLABLE = PREFIXES = ("python:", "call:")
"""What the names of functions begin with: `python:module:function`, or handed over in Python."""

CODE = "code"
"""The setting that has the SHA-256 of each of a program's sources."""

MOVES_CODE = frozenset({"argv", "checkout", "directory", "sources"})
"""Settings that say which files a program is: when one differs, its code is pinned again."""

_KINDS = {
    "nanochat": "nanochat.objective:NanochatObjective",
    "nanochat checkout": "checkout:CheckoutObjective",
    "command": "command:CommandObjective",
    FUNCTION: "function:FunctionObjective",
    CALLABLE: "callable:CallableObjective",
    **dict.fromkeys(ANALYTIC, "analytic:AnalyticObjective"),
}
"""The class of each kind, imported when it is asked for. It declares knobs, settings, budget."""


def kind(spec: ObjectiveSpec) -> str:
    """Return what is tuned, in words: our own nanochat and a user's checkout have one name."""
    is_checkout = spec.name == "nanochat" and "checkout" in spec.settings
    return "nanochat checkout" if is_checkout else spec.name


def _class(spec: ObjectiveSpec) -> type[Objective]:
    """Return the class of an objective. Raises ValueError on an unknown name."""
    own = kind(spec)
    key = next((prefix for prefix in PREFIXES if own.startswith(prefix)), own)
    if key not in _KINDS:
        known = ("nanochat", "command", f"{FUNCTION}MODULE:FUNCTION", *ANALYTIC)
        raise unknown("objective", own, known)
    found: type[Objective] = resolve_name(f"objectives.{_KINDS[key]}")
    return found


def load(spec: ObjectiveSpec) -> Objective:
    """Return the objective of `spec`. Raises ValueError on an unknown name or a wrong setting."""
    return _class(spec).from_settings(spec.name, spec.settings)


def settings_of(name: str, given: Collection[str] = ()) -> type[Settings]:
    """Return what may be set of the objective of that name, with the settings `given`.

    Raises ValueError on an unknown one.
    """
    return _class(ObjectiveSpec(name=name, settings=dict.fromkeys(given))).model


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
    left_out = set() if spec.name.startswith(CALLABLE) else {CODE}
    config = load(spec).config
    settings: dict[str, Any] = config.model_dump(
        mode="json", exclude_none=True, exclude_defaults=True, exclude=left_out
    )
    return settings


def short_name(spec: ObjectiveSpec) -> str:
    """Return a name for files and runs: lower case, without a colon, 40 characters at most.

    A function's has its module, a command's the fixed part of what it starts.
    """
    name = kind(spec).removeprefix(FUNCTION).removeprefix(CALLABLE)
    if name == "command":
        words = (Path(word).name for word in spec.settings.get("argv", ()) if "{" not in word)
        name = "-".join((name, *(word.removesuffix(".py").lstrip("-") for word in words)))
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower())[-40:].strip("-._") or "function"
