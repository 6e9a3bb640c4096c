"""Settings that a person knows to be good: read from a file, as points of the unit cube."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from objectives.files import read_text, read_toml
from objectives.settings import TwinKeysError, each_key_once, shown, unknown
from objectives.space import Knob, SearchSpace

OPTION, TABLES = "search.known", "settings"
LARGEST = 1 << 20
"""Bytes of such a file: a longer one is another file."""


@dataclass(frozen=True)
class KnownSettings:
    """Each some of the knobs, in their own units."""

    file: str  # for messages
    settings: tuple[Mapping[str, float], ...]

    def points(
        self, space: SearchSpace, otherwise: Sequence[float], population: int
    ) -> tuple[tuple[float, ...], ...]:
        """The knobs that a setting does not name are as in the point `otherwise`.

        Raises ValueError where two are the same, and on more than half of the population.
        """
        points: list[tuple[float, ...]] = []
        for number, setting in enumerate(self.settings, 1):
            point = tuple(
                knob.encode(setting[knob.name]) if knob.name in setting else unit
                for knob, unit in zip(space.knobs, otherwise, strict=True)
            )
            if point in points:
                raise _error(self.file, number, f"the same as entry {points.index(point) + 1}")
            points.append(point)
        if len(points) > population // 2:
            raise ValueError(
                f"{OPTION} {self.file}: expected {population // 2} settings at most, half of a "
                f"generation's {population} candidates, got {len(points)}"
            )
        return tuple(points)


def read_known(file: Path, space: SearchSpace) -> KnownSettings:
    """The settings in a TOML or a JSON file, whatever knobs of the space each of them names.

    That is `[[settings]]` in TOML; in JSON a list of objects, or a run's best.json. Raises
    ValueError on anything else, naming file, entry and knob.
    """
    name, entries = str(file), _entries(file)
    if not entries:
        raise ValueError(f"{OPTION} {name}: expected a setting at least, and there is none")
    read = (_setting(name, n, entry, space) for n, entry in enumerate(entries, 1))
    return KnownSettings(name, tuple(read))


def _setting(file: str, number: int, entry: Any, space: SearchSpace) -> dict[str, float]:
    if not isinstance(entry, dict) or not entry:
        raise _error(file, number, f"expected values by the names of knobs, got {shown(entry)}")
    knobs = {knob.name: knob for knob in space.knobs}
    for name in entry:
        if name not in knobs:
            raise _error(file, number, str(unknown("knob", name, knobs)))
    return {name: _value(file, number, knobs[name], value) for name, value in entry.items()}


def _value(file: str, number: int, knob: Knob, given: Any) -> float:
    try:
        return value_of(knob, given)
    except ValueError as error:
        raise _error(file, number, str(error)) from error


def value_of(knob: Knob, given: Any) -> float:
    """The number, if the knob can have it. Raises ValueError, naming the knob, if it cannot."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    value = _as_float(given) if is_number else None
    if value is None:
        raise ValueError(f"{knob.name}: expected a number, got {shown(given)}")
    low, high = knob.decode(0.0), knob.decode(1.0)
    if not low <= value <= high and not (isclose(value, low) or isclose(value, high)):
        raise ValueError(f"{knob.name}: expected {low:g} to {high:g}, got {value:g}")
    value = min(max(value, low), high)
    if knob.kind == "int" and knob.decode(knob.encode(value)) != value:
        grid = "a whole number" if knob.step == 1 else f"{low:g} and whole steps of {knob.step}"
        raise ValueError(f"{knob.name}: expected {grid}, got {value:g}")
    return knob.typed(value)


def _as_float(given: int | float) -> float | None:
    try:
        value = float(given)
    except OverflowError:
        return None
    return value if isfinite(value) else None


def _error(file: str, number: int, why: str) -> ValueError:
    return ValueError(f"{OPTION} {file}, entry {number}: {why}")


def _entries(file: Path) -> list[Any]:
    content = _parsed(file)
    found = content
    if isinstance(content, dict) and file.suffix == ".toml":
        if others := [name for name in content if name != TABLES]:
            raise ValueError(
                f"{OPTION} {file}: expected [[{TABLES}]] alone, got {shown(others[0])} beside it"
            )
        found = content.get(TABLES, [])
    elif isinstance(content, dict) and "recommendation" in content:
        best = content["recommendation"]
        if not isinstance(best, dict):
            raise ValueError(f"{OPTION} {file} recommends nothing")
        found = [best.get("knobs")]
    if not isinstance(found, list):
        raise ValueError(f"{OPTION} {file}: expected {_FORMS[file.suffix]}, got {shown(content)}")
    return found


_FORMS = {
    ".toml": f"tables [[{TABLES}]]",
    ".json": "a list of objects, or a run's best.json",
}


def _parsed(file: Path) -> Any:
    if file.suffix not in _FORMS:
        raise ValueError(f"{OPTION} {file}: expected a file that ends in .toml or .json")
    place = f"{OPTION} {file}"
    if file.suffix == ".toml":
        return read_toml(file, place)
    try:
        return json.loads(read_text(file, place), object_pairs_hook=each_key_once)
    except TwinKeysError as error:
        raise ValueError(f"{place}: an object names the key {shown(str(error))} twice") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{place} is no JSON file: {error}") from error
