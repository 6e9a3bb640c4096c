"""Settings known to be good: read from a file, as points of the unit cube."""

import json
from collections.abc import Mapping, Sequence
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from objectives.files import read_text, read_toml
from objectives.settings import TwinKeysError, each_key_once, shown, unknown
from objectives.space import Knob, SearchSpace

OPTION, TABLES = "search.known", "settings"

_FORMS = {
    ".toml": f"tables [[{TABLES}]]",
    ".json": "a list of objects, or a run's best.json",
}


def read_known(file: Path, space: SearchSpace) -> list[dict[str, float]]:
    """Return the settings in a TOML or JSON file, each of some of the knobs, in their own units.

    That is `[[settings]]` in TOML; in JSON a list of objects, or a run's best.json. Raises
    ValueError on anything else, naming file, entry and knob.
    """
    entries = _entries(file)
    if not entries:
        raise ValueError(f"{OPTION} {file}: expected a setting at least, and there is none")
    return [_setting(file, number, entry, space) for number, entry in enumerate(entries, 1)]


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
            raise _error(file, number, f"the same as entry {points.index(point) + 1}")
        points.append(point)
    if len(points) > population // 2:
        raise ValueError(
            f"{OPTION} {file}: expected {population // 2} settings at most, half of a "
            f"generation's {population} candidates, got {len(points)}"
        )
    return tuple(points)


def value_of(knob: Knob, given: Any) -> float:
    """Return the number, if the knob can have it. Raises ValueError, naming the knob."""
    value = None
    if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < 1e300:
        value = float(given)
    if value is None or not isfinite(value):
        raise ValueError(f"{knob.name}: expected a number, got {shown(given)}")
    low, high = knob.decode(0.0), knob.decode(1.0)
    if not low <= value <= high and not (isclose(value, low) or isclose(value, high)):
        raise ValueError(f"{knob.name}: expected {low:g} to {high:g}, got {value:g}")
    value = min(max(value, low), high)
    if knob.kind == "int" and knob.decode(knob.encode(value)) != value:
        grid = "a whole number" if knob.step == 1 else f"{low:g} and whole steps of {knob.step}"
        raise ValueError(f"{knob.name}: expected {grid}, got {value:g}")
    return knob.typed(value)


def _setting(file: Path, number: int, entry: Any, space: SearchSpace) -> dict[str, float]:
    if not isinstance(entry, dict) or not entry:
        raise _error(file, number, f"expected values by the names of knobs, got {shown(entry)}")
    knobs = {knob.name: knob for knob in space.knobs}
    try:
        for name in entry:
            if name not in knobs:
                raise unknown("knob", name, knobs)
        return {name: value_of(knobs[name], value) for name, value in entry.items()}
    except ValueError as error:
        raise _error(file, number, str(error)) from error


def _error(file: Path, number: int, why: str) -> ValueError:
    return ValueError(f"{OPTION} {file}, entry {number}: {why}")


def _entries(file: Path) -> list[Any]:
    if file.suffix not in _FORMS:
        raise ValueError(f"{OPTION} {file}: expected a file that ends in .toml or .json")
    place = f"{OPTION} {file}"
    if file.suffix == ".toml":
        tables = read_toml(file, place)
        if others := [name for name in tables if name != TABLES]:
            raise ValueError(f"{place}: expected [[{TABLES}]] alone, got {shown(others[0])} beside")
        content = found = tables.get(TABLES, [])
    else:
        content = found = _json(file, place)
        if isinstance(content, dict) and "recommendation" in content:
            best = content["recommendation"]
            if not isinstance(best, Mapping):
                raise ValueError(f"{place} recommends nothing")
            found = [best.get("knobs")]
    if not isinstance(found, list):
        raise ValueError(f"{place}: expected {_FORMS[file.suffix]}, got {shown(content)}")
    return found


def _json(file: Path, place: str) -> Any:
    try:
        return json.loads(read_text(file, place), object_pairs_hook=each_key_once)
    except TwinKeysError as error:
        raise ValueError(f"{place}: an object names the key {shown(str(error))} twice") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{place} is no JSON file: {error}") from error
