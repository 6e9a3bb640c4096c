"""Settings known to be good, read from a file: the first candidates of a search."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from objectives.files import read_text
from objectives.settings import in_words, shown, unknown
from objectives.space import Knob, SearchSpace

OPTION = "search.known"


def read_known(file: Path, space: SearchSpace) -> list[dict[str, float]]:
    """Return the settings in a JSON file, each of some knobs in their own units.

    The file holds a list of objects, or is a run's best.json. Raises ValueError otherwise, naming
    file, entry and knob.
    """
    place = f"{OPTION} {file}"
    try:
        content = json.loads(read_text(file, place))
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
    knobs, settings = {knob.name: knob for knob in space.knobs}, []
    for number, entry in enumerate(content, 1):
        own = f"{place}, entry {number}"
        if not isinstance(entry, dict) or not entry:
            raise ValueError(f"{own}: expected values by the names of knobs, got {shown(entry)}")
        if other := [name for name in entry if name not in knobs]:
            raise unknown(f"knob ({own})", other[0], knobs)
        settings.append({name: _value(knobs[name], value, own) for name, value in entry.items()})
    return settings


def _value(knob: Knob, given: Any, place: str) -> float:
    """Return a value that the knob can have: as its baseline could be. Raises ValueError."""
    try:
        return Knob.model_validate({**knob.model_dump(), "baseline": given}).baseline
    except ValidationError as error:
        why = in_words(error).removeprefix(f"knob {knob.name}: ").removeprefix("baseline")
        raise ValueError(f"{place}: {knob.name}:{why.removeprefix(':')}") from error


def known_points(
    file: Path, space: SearchSpace, otherwise: Sequence[float], population: int
) -> tuple[tuple[float, ...], ...]:
    """Return the settings as points; knobs that one does not name are as in `otherwise`.

    Raises ValueError on equal ones, and on more than half of the population.
    """
    points: list[tuple[float, ...]] = []
    for number, setting in enumerate(read_known(file, space), 1):
        point = tuple(
            knob.encode(setting[knob.name]) if knob.name in setting else unit
            for knob, unit in zip(space.knobs, otherwise, strict=True)
        )
        if point in points:
            raise ValueError(
                f"{OPTION} {file}, entry {number}: the same as entry {points.index(point) + 1}"
            )
        points.append(point)
    if len(points) > population // 2:
        raise ValueError(
            f"{OPTION} {file}: expected {population // 2} settings at most, half of a "
            f"generation's {population} candidates, got {len(points)}"
        )
    return tuple(points)
