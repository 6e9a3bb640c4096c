"""From a name and settings to an objective."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from objectives.analytic_settings import AnalyticSettings
from objectives.api import Objective, ObjectiveSpec
from objectives.settings import unknown


def _nanochat(settings: Mapping[str, Any]) -> Objective:
    from objectives.nanochat.objective import NanochatObjective

    return NanochatObjective.from_settings(settings)


def _analytic(name: str) -> Callable[[Mapping[str, Any]], Objective]:
    def build(settings: Mapping[str, Any]) -> Objective:
        from objectives.analytic import AnalyticObjective

        return AnalyticObjective.from_settings(name, settings)

    return build


ANALYTIC = ("sphere", "ellipsoid", "rosenbrock", "cliff", "idle", "noise")
_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Objective]] = {
    "nanochat": _nanochat,
    **{name: _analytic(name) for name in ANALYTIC},
}


class Named(NamedTuple):
    """What may be said of an objective's settings besides their values."""

    presets: Mapping[str, Mapping[str, Any]] = {}  # settings by the name of all of them
    profiles: Mapping[str, Mapping[str, Any]] = {}
    settings: tuple[str, ...] = ()  # that it has
    aside: tuple[str, ...] = ()  # that only its training by itself has


def named(name: str) -> Named:
    """What the objective of that name has. Raises ValueError on an unknown one."""
    if name not in _BUILDERS:
        raise unknown("objective", name, _BUILDERS)
    if name in ANALYTIC:
        return Named(settings=tuple(AnalyticSettings.model_fields))
    from objectives.nanochat.config import NanochatConfig
    from objectives.nanochat.program.presets import PRESETS, PROFILES
    from objectives.nanochat.program.settings import ProgramConfig

    settings, aside = tuple(NanochatConfig.model_fields), tuple(ProgramConfig.model_fields)
    return Named(PRESETS, PROFILES, settings, aside)


def load(spec: ObjectiveSpec) -> Objective:
    """The objective `spec` names. Raises ValueError on an unknown name or a wrong setting."""
    if spec.name not in _BUILDERS:
        raise unknown("objective", spec.name, _BUILDERS)
    return _BUILDERS[spec.name](spec.settings)


def varied(spec: ObjectiveSpec, variant_settings: Mapping[str, Any]) -> ObjectiveSpec:
    """`spec` with a variant's settings laid over its own. Raises ValueError as `load` does."""
    settings = {**spec.settings, **variant_settings}
    return load(ObjectiveSpec(name=spec.name, settings=settings)).spec
