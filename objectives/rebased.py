"""An objective whose baseline is where a search ended, in as few settings as it takes.

Where the knobs begin is said in one of three ways: by settings of their names, by the baselines of
declared knobs, by flags that a program gets. Which of them it is, loading the result tells.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from objectives import registry
from objectives.api import Knobs, ObjectiveSpec, SetupError
from objectives.space import SearchSpace

DECLARED, FLAGS = "knobs", "flags"


def rebased(spec: ObjectiveSpec, space: SearchSpace, knobs: Knobs) -> ObjectiveSpec | None:
    """`spec` with `knobs` of its `space` for the baseline; None where no settings say that."""
    kinds = {knob.name: knob.kind for knob in space.knobs}
    values = {n: int(v) if kinds[n] == "int" else float(v) for n, v in knobs.items()}
    for settings in _ways(spec.settings, values):
        moved = ObjectiveSpec(name=spec.name, settings=settings)
        if _baseline(moved) == dict(knobs):
            return moved
    return None


def _ways(settings: Mapping[str, Any], values: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Settings that may say so; a knob that is declared and set as a flag is moved in both."""
    yield {**settings, **values}
    declared, flags = settings.get(DECLARED), settings.get(FLAGS)
    if isinstance(declared, Mapping):
        moved = {**settings, DECLARED: _redeclared(declared, values)}
        if isinstance(flags, Mapping):
            moved[FLAGS] = {name: values.get(name, value) for name, value in flags.items()}
        yield moved
    if isinstance(flags, Mapping):
        yield {**settings, FLAGS: {**flags, **values}}


def _redeclared(declared: Mapping[str, Any], values: Mapping[str, float]) -> dict[str, Any]:
    return {
        name: {**knob, "baseline": values[name]}
        if isinstance(knob, Mapping) and name in values
        else knob
        for name, knob in declared.items()
    }


def _baseline(spec: ObjectiveSpec) -> dict[str, float] | None:
    """The knobs at the baseline; None of what cannot be loaded."""
    try:
        space = registry.load(spec).space
    except (ValueError, SetupError):
        return None
    return {knob.name: knob.baseline for knob in space.knobs}


def essential(spec: ObjectiveSpec) -> dict[str, Any]:
    """The settings without which the objective is another one: the others are its defaults.

    Where something lies is said all the same: elsewhere the default is another place. Sources are
    not pinned. Raises ValueError or SetupError where it cannot be loaded.
    """
    whole, kept = registry.load(spec).spec, dict(spec.settings)
    for name in spec.settings:
        fewer = {key: value for key, value in kept.items() if key != name}
        is_default = name != registry.CODE and not _is_place(kept[name])
        if is_default and _is(whole, ObjectiveSpec(name=spec.name, settings=fewer)):
            kept = fewer
    return {name: value for name, value in kept.items() if name != registry.CODE}


def _is_place(value: Any) -> bool:
    return isinstance(value, str) and os.path.isabs(value)


def _is(whole: ObjectiveSpec, fewer: ObjectiveSpec) -> bool:
    try:
        return registry.load(fewer).spec == whole
    except (ValueError, SetupError):
        return False
