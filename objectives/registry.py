"""From a name and settings to an objective.

Three doors lead to programs that are not ours: `nanochat` with the setting `checkout`, `command`,
and `python:module:function`.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from objectives.analytic_settings import AnalyticSettings
from objectives.api import Objective, ObjectiveSpec
from objectives.settings import unknown

ANALYTIC = ("sphere", "ellipsoid", "rosenbrock", "cliff", "idle", "noise")
FUNCTION = "python:"
"""What the name of a function begins with: `python:module:function`."""

CHECKOUT = "checkout"
"""The setting that makes `nanochat` the one in a directory of the user's."""

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
    if name == "command":
        from objectives.command.config import CommandConfig

        return Named(settings=tuple(CommandConfig.model_fields))
    if name.startswith(FUNCTION):
        from objectives.function.config import FunctionConfig

        return Named(settings=tuple(FunctionConfig.model_fields))
    if name != "nanochat":
        raise unknown("objective", name, NAMES)
    if CHECKOUT in given:
        from objectives.checkout.config import CheckoutConfig

        return Named(settings=tuple(CheckoutConfig.model_fields))
    from objectives.nanochat.config import NanochatConfig
    from objectives.nanochat.program.presets import PRESETS, PROFILES
    from objectives.nanochat.program.settings import ProgramConfig

    settings = (*NanochatConfig.model_fields, CHECKOUT)
    return Named(PRESETS, PROFILES, settings, tuple(ProgramConfig.model_fields))


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
    def build(settings: Mapping[str, Any]) -> Objective:
        from objectives.analytic import AnalyticObjective

        return AnalyticObjective.from_settings(name, settings)

    return build


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

    A table is laid over a table name by name; `fixed.depth` is one name of the table `fixed`.
    """
    settings = dict(spec.settings)
    for key, value in variant_settings.items():
        table, dot, name = key.partition(".")
        own, new = settings.get(table), {name: value} if dot else value
        if isinstance(own, Mapping) and isinstance(new, Mapping):
            new = {**own, **new}
        settings[table] = new
    return load(ObjectiveSpec(name=spec.name, settings=settings)).spec


def short_name(spec: ObjectiveSpec) -> str:
    """A name for files and runs: lower case, without a colon, 40 characters at most."""
    name = "nanochat-checkout" if CHECKOUT in spec.settings else spec.name
    if name.startswith(FUNCTION):
        name = name.rpartition(":")[2]
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:40] or "function"
