"""From a name and settings to an objective.

Three doors lead to programs that are not ours: `nanochat` with the setting `checkout`, `command`,
and `python:module:function`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from objectives.analytic import FUNCTIONS, AnalyticObjective, AnalyticSettings
from objectives.api import Objective, ObjectiveSpec
from objectives.settings import unknown

ANALYTIC = tuple(FUNCTIONS)
FUNCTION = "python:"
"""What the name of a function begins with: `python:module:function`."""

CODE = "code"
"""The setting that has the SHA-256 of a program's sources."""

CHECKOUT = "checkout"
"""The setting that makes `nanochat` the one in a directory of the user's."""

MOVES_CODE = frozenset({"argv", "checkout", "directory", "module", "sources"})
"""Settings that say which files a program is: with another one its pinned code is another too."""

SCRIPTS = frozenset({".jl", ".pl", ".py", ".r", ".R", ".rb", ".sh"})
"""How a script's name ends."""

NAMES = ("nanochat", "command", f"{FUNCTION}MODULE:FUNCTION", *ANALYTIC)


class Named(NamedTuple):
    """What may be said of an objective's settings besides their values."""

    presets: Mapping[str, Mapping[str, Any]] = {}  # settings by the name of all of them
    profiles: Mapping[str, Mapping[str, Any]] = {}
    settings: tuple[str, ...] = ()  # that it has
    aside: tuple[str, ...] = ()  # that only its training by itself has


def named(name: str, given: Collection[str] = ()) -> Named:
    """What the objective has that has that name, and the settings `given`.

    Raises ValueError on an unknown one.
    """
    if name in ANALYTIC:
        return Named(settings=tuple(AnalyticSettings.model_fields))
    if name not in {"nanochat", "command"} and not name.startswith(FUNCTION):
        raise unknown("objective", name, NAMES)
    if name != "nanochat" or CHECKOUT in given:
        return Named(settings=tuple(_program_config(name).model_fields))
    from objectives.nanochat.config import PRESETS, PROFILES, NanochatConfig, RunConfig

    settings = (*NanochatConfig.model_fields, CHECKOUT)
    return Named(PRESETS, PROFILES, settings, tuple(RunConfig.model_fields))


def _program_config(name: str) -> type[BaseModel]:
    """What is asked of a program that is not ours; of `nanochat` that is a checkout."""
    if name == "command":
        from objectives.command.config import CommandConfig

        return CommandConfig
    if name == "nanochat":
        from objectives.checkout.config import CheckoutConfig

        return CheckoutConfig
    from objectives.function.objective import FunctionConfig

    return FunctionConfig


def _nanochat(settings: Mapping[str, Any]) -> Objective:
    if CHECKOUT in settings:
        from objectives.checkout.objective import CheckoutObjective

        return CheckoutObjective.from_settings(settings)
    from objectives.nanochat.objective import NanochatObjective

    return NanochatObjective.from_settings(settings)


def _command(settings: Mapping[str, Any]) -> Objective:
    from objectives.command.objective import CommandObjective

    return CommandObjective.from_settings(settings)


def _analytic(name: str) -> Callable[[Mapping[str, Any]], Objective]:
    return partial(AnalyticObjective.from_settings, name)


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Objective]] = {
    "nanochat": _nanochat,
    "command": _command,
    **{name: _analytic(name) for name in ANALYTIC},
}


def load(spec: ObjectiveSpec) -> Objective:
    """The objective `spec` names. Raises ValueError on an unknown name or a wrong setting."""
    if spec.name.startswith(FUNCTION):
        from objectives.function.objective import FunctionObjective

        return FunctionObjective.from_settings(spec.name, spec.settings)
    if spec.name not in _BUILDERS:
        raise unknown("objective", spec.name, NAMES)
    return _BUILDERS[spec.name](spec.settings)


def varied(spec: ObjectiveSpec, variant_settings: Mapping[str, Any]) -> ObjectiveSpec:
    """`spec` with a variant's settings laid over its own. Raises ValueError as `load` does.

    A table is laid over a table name by name; `fixed.depth` is one name of the table `fixed`. Of a
    program that is another one then, the code is measured.
    """
    settings = dict(spec.settings)
    if not MOVES_CODE.isdisjoint(variant_settings):
        settings.pop(CODE, None)
    for key, value in variant_settings.items():
        table, _, name = key.partition(".")
        own = settings.get(table)
        if name and isinstance(own, Mapping):
            settings[table] = {**own, name: value}
        elif isinstance(own, Mapping) and isinstance(value, Mapping):
            settings[key] = {**own, **value}
        else:
            settings[key] = value
    return load(ObjectiveSpec(name=spec.name, settings=settings)).spec


def kind(spec: ObjectiveSpec) -> str:
    """What is tuned, in words: our own nanochat and somebody's checkout have one name."""
    is_checkout = spec.name == "nanochat" and CHECKOUT in spec.settings
    return "nanochat checkout" if is_checkout else spec.name


def usual(spec: ObjectiveSpec) -> Mapping[str, Any]:
    """The settings that an objective of that kind has where nobody says anything."""
    if spec.name in _BUILDERS and spec.name != "command" and CHECKOUT not in spec.settings:
        return load(ObjectiveSpec(name=spec.name)).spec.settings
    return _defaults(_program_config(spec.name))


def unusual(spec: ObjectiveSpec) -> dict[str, Any]:
    """The settings that somebody gave: those that are not what they would be anyway.

    The code that was found is none. Raises ValueError or SetupError as `usual` does.
    """
    expected = usual(spec)
    return {
        name: value
        for name, value in spec.settings.items()
        if name != CODE and not (name in expected and expected[name] == value)
    }


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Of the settings that need not be given."""
    fields = {name: field for name, field in model.model_fields.items() if not field.is_required()}
    found = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    jsonable: dict[str, Any] = to_jsonable_python(found, exclude_none=True)
    return jsonable


def short_name(spec: ObjectiveSpec) -> str:
    """A name for files and runs: lower case, without a colon, 40 characters at most.

    A function's has its module, a command's the script or the module that it starts.
    """
    name = "nanochat-checkout" if CHECKOUT in spec.settings else spec.name
    if name.startswith(FUNCTION):
        name = name.removeprefix(FUNCTION)
    elif name == "command":
        name = f"{name}-{_program(spec.settings.get('argv', ()))}"
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower())[-40:].strip("-._") or "function"


def _program(argv: Sequence[str]) -> str:
    """What a person calls it: `train` of `python train.py`, `python -m train` and `./train`."""
    if "-m" in argv[:-1]:
        return argv[argv.index("-m") + 1]
    named = (Path(part) for part in argv if "{" not in part and "=" not in part)
    found = next((path for path in named if path.suffix in SCRIPTS), Path("".join(argv[:1])))
    return found.stem
