"""Settings known to be good: read from a file, as points of the unit cube."""

import json
from collections.abc import Mapping, Sequence
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from objectives.files import read_text
from objectives.settings import TwinKeysError, each_key_once, shown, unknown
from objectives.space import Knob, SearchSpace

OPTION = "search.known"


def read_known(file: Path, space: SearchSpace) -> list[dict[str, float]]:
    """Return the settings in a JSON file, each of some of the knobs, in their own units.

    That is a list of objects, or a run's best.json. Raises ValueError on anything else, naming
    file, entry and knob.
    """
    place = f"{OPTION} {file}"
    try:
        content = json.loads(read_text(file, place), object_pairs_hook=each_key_once)
    except TwinKeysError as error:
        raise ValueError(f"{place}: an object names the key {shown(str(error))} twice") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{place} is no JSON file: {error}") from error
    if isinstance(content, dict) and "recommendation" in content:
        if not isinstance(best := content["recommendation"], Mapping):
            raise ValueError(f"{place} recommends nothing")
        content = [best.get("knobs")]
    if not isinstance(content, list) or not content:
        raise ValueError(
            f"{place}: expected a list of settings, or a run's best.json, got {shown(content)}"
        )
    return [_setting(place, number, entry, space) for number, entry in enumerate(content, 1)]


def _setting(place: str, number: int, entry: Any, space: SearchSpace) -> dict[str, float]:
    knobs = {knob.name: knob for knob in space.knobs}
    try:
        if not isinstance(entry, dict) or not entry:
            raise ValueError(f"expected values by the names of knobs, got {shown(entry)}")
        for name in entry:
            if name not in knobs:
                raise unknown("knob", name, knobs)
        return {name: value_of(knobs[name], value) for name, value in entry.items()}
    except ValueError as error:
        raise ValueError(f"{place}, entry {number}: {error}") from error


def known_points(
    file: Path, space: SearchSpace, otherwise: Sequence[float], population: int
) -> tuple[tuple[float, ...], ...]:
    """Return the settings as points; the knobs that one does not name are as in `otherwise`.

    Raises ValueError where two are the same, and on more than half of the population.
    """
    points: list[tuple[float, ...]] = []
    for number, setting in enumerate(read_known(file, space), 1):
        point = tuple(
            knob.encode(setting[knob.name]) if knob.name in setting else unit
            for knob, unit in zip(space.knobs, otherwise, strict=True)
        )
        if point in points:
            same = points.index(point) + 1
            raise ValueError(f"{OPTION} {file}, entry {number}: the same as entry {same}")
        points.append(point)
    if len(points) > population // 2:
        raise ValueError(
            f"{OPTION} {file}: expected {population // 2} settings at most, half of a "
            f"generation's {population} candidates, got {len(points)}"
        )
    return tuple(points)


def value_of(knob: Knob, given: Any) -> float:
    """Return the number, if the knob can have it. Raises ValueError, naming the knob."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not abs(given) < 1e300 or not isfinite(value := float(given)):
        raise ValueError(f"{knob.name}: expected a number, got {shown(given)}")
    low, high = knob.decode(0.0), knob.decode(1.0)
    if not low <= value <= high and not (isclose(value, low) or isclose(value, high)):
        raise ValueError(f"{knob.name}: expected {low:g} to {high:g}, got {value:g}")
    value = min(max(value, low), high)
    if knob.kind == "int" and knob.decode(knob.encode(value)) != value:
        grid = "a whole number" if knob.step == 1 else f"{low:g} and whole steps of {knob.step}"
        raise ValueError(f"{knob.name}: expected {grid}, got {value:g}")
    return knob.typed(value)
