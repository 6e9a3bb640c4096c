"""A choice as values of a configuration file: written so that a run takes them from there."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from budgets.storage import write_aside
from orchestrator.planning.fit import Choice

Values = Mapping[str, Any]
"""By dotted key; None: the key is taken away."""


def chosen(choice: Choice) -> dict[str, Any]:
    """The keys that fitting decides."""
    search, varied = choice.idea.config.search, choice.idea.varied
    values: dict[str, Any] = {
        "search.tier": choice.plan.tier,
        "search.generations": search.generations,
        "search.seeds_per_candidate": search.seeds_per_candidate,
    }
    if varied is not None:
        values |= {f"training.{name}": value for name, value in varied.settings.items()}
    if (seeds := choice.idea.config.verdict.confirm_seeds) is not None:
        values["verdict.confirm_seeds"] = seeds
    return values


def applied(text: str, values: Values) -> str:
    """The TOML document with these values in it, and its comments kept.

    Raises ValueError where it is no TOML, or has a value where a table belongs.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(f"--out: expected TOML: {error}") from error
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
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ValueError(f"--out: {path} is no text: {error}") from error


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
            raise ValueError(f"--out: expected a table [{part}], got {part} = {table}")
    if value is None:
        table.pop(name, None)
    elif table.get(name) != value:
        table[name] = value
