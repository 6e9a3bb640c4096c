"""A choice as values of a configuration file: written so that a run takes them from there."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from budgets.storage import write_aside
from budgets.terms import Window
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.planning.choice import Choice
from orchestrator.planning.request import Request

Values = Mapping[str, Any]
"""By dotted key; None: the key is taken away."""


def chosen(choice: Choice, window: Window | None) -> dict[str, Any]:
    """The keys that fitting decides."""
    request, idea = choice.idea.request, choice.idea
    values: dict[str, Any] = {
        "search.phase": request.phase,
        "search.tier": request.tier,
        "search.generations": request.generations,
        "search.seeds_per_candidate": request.seeds_per_candidate,
    }
    if idea.varied is not None:
        values |= {f"training.{name}": value for name, value in idea.varied.settings.items()}
    if request.confirm.seeds is not None:
        values["verdict.confirm_seeds"] = request.confirm.seeds
    if request.max_hours is not None:
        values["budget.max_hours"] = request.max_hours
    if window is not None:
        values |= _window(window)
    return values


def described(request: Request, assumed_seconds: float | None) -> dict[str, Any]:
    """Everything else that was asked for, as far as it is not the default: for a new file."""
    follows, confirm = request.follows, request.confirm
    values = {
        "objective": request.objective.spec.name,
        **{f"training.{name}": value for name, value in _settings(request.objective)},
        "search.run_id": request.run_id,
        "search.seed": request.search_seed,
        "search.method": request.method,
        "search.sigma0": request.sigma0,
        "search.population": request.population,
        "search.warm_start": request.warm_start,
        "search.proxy": request.proxy,
        "search.from": None if follows is None else follows.run,
        "search.variant": None if follows is None else follows.variant,
        "budget.max_evals": request.max_evals,
        "budget.max_device_hours": request.max_device_hours,
        "budget.max_cost": request.max_cost,
        "budget.price_per_device_hour": request.price_per_device_hour or None,
        "evaluation.seed": request.evaluation_seed,
        "evaluation.limit_seconds": request.limit_seconds,
        "evaluation.stall_seconds": request.stall_seconds,
        "evaluation.assume_eval_seconds": assumed_seconds,
        "verdict.rung": confirm.rung_factor,
        "verdict.rung_seeds": confirm.rung_seeds,
        **{f"thresholds.{name}": value for name, value in request.thresholds.items()},
    }
    return {key: value for key, value in values.items() if value is not None}


def applied(text: str, values: Values) -> str:
    """The TOML document with these values in it, and its comments kept.

    Raises ValueError where it is no TOML, or has a value where a table belongs.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(f"--apply: expected TOML: {error}") from error
    for key, value in values.items():
        _put(document, key.split("."), value)
    return tomlkit.dumps(document)


def write(path: Path, text: str) -> str:
    """Replace the file whole; returns what changed, as a diff. Raises OSError."""
    before = read(path)
    write_aside(path, text.encode())
    return difference(path, before, text)


def read(path: Path) -> str:
    """The file as text; empty where there is none. Raises OSError, ValueError on other bytes."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ValueError(f"--apply: {path} is no text: {error}") from error


def difference(path: Path, before: str, after: str) -> str:
    """What changes, line by line; empty where nothing does."""
    lines = (before.splitlines(), after.splitlines())
    return "\n".join(difflib.unified_diff(*lines, str(path), str(path), lineterm="", n=1))


def _put(table: Any, path: list[str], value: Any) -> None:
    *above, name = path
    for part in above:
        if part not in table:
            if value is None:
                return
            table[part] = tomlkit.table()
        table = table[part]
        if not isinstance(table, Mapping):
            raise ValueError(f"--apply: expected a table [{part}], got {part} = {table}")
    if value is None:
        table.pop(name, None)
    elif table.get(name) != value:
        table[name] = value


def _settings(objective: Objective) -> Iterator[tuple[str, Any]]:
    """Those that are not the default."""
    usual = registry.load(ObjectiveSpec(name=objective.spec.name)).spec.settings
    for name, value in objective.spec.settings.items():
        if value is not None and usual.get(name) != value:
            yield name, value


def _window(window: Window) -> dict[str, str]:
    margin = _duration(window.margin_seconds)
    until = window.until
    text = _duration(3600 * (window.hours or 0.0)) if until is None else until.isoformat()
    return {"budget.window": text, "budget.safety_margin": margin}


def _duration(seconds: float) -> str:
    """As `--window` reads it: in hours or minutes where these are whole."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds and round(seconds, 6) % length == 0:
            return f"{round(seconds / length)}{unit}"
    return f"{round(seconds, 3):.3f}".rstrip("0").rstrip(".") + "s"
