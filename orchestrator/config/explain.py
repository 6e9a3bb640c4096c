"""Every value of a configuration, and where it is from, for a person and as JSON."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from budgets.plain import plain
from budgets.table import table
from objectives.settings import cut
from orchestrator.config.resolve import Resolved, all_keys

LONGEST = 60
"""Of a list of tables that is shown: a hundred conditions have a table of their own. Of a table in
one row."""


def as_dict(resolved: Resolved) -> dict[str, Any]:
    """Each key with value and source."""
    return {
        key: {"value": value, "source": resolved.source(key)}
        for key, value in all_keys(resolved).items()
    }


def to_markdown(resolved: Resolved) -> Iterator[str]:
    """A table for each table of the file: of what is set, then of the defaults."""
    every = all_keys(resolved)
    defaults = {key: value for key, value in every.items() if resolved.source(key) == "default"}
    yield from _tables(resolved, {k: v for k, v in every.items() if k not in defaults})
    yield from ("", "# Defaults")
    yield from _tables(resolved, defaults)


def _tables(resolved: Resolved, values: Mapping[str, Any]) -> Iterator[str]:
    tables: dict[str, list[tuple[str, ...]]] = {}
    for key, value in values.items():
        name, dot, _ = key.partition(".")
        rows = (_row(resolved, key, own, part) for own, part in _lines(key, value))
        tables.setdefault(name if dot else "", []).extend(rows)
    for name, found in tables.items():
        yield from ("", f"## [{name}]" if name else "## Above all tables", "")
        yield from table(("key", "value", "from"), found)


def _lines(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The value by its name in the table; one that is a table itself, and long, part by part."""
    name = key.rpartition(".")[2] if key.count(".") == 1 else key
    if isinstance(value, Mapping) and len(json.dumps(value, default=str)) > LONGEST:
        yield from ((f"{name}.{inner}", part) for inner, part in value.items())
    else:
        yield name, value


def _row(resolved: Resolved, key: str, name: str, value: Any) -> tuple[str, ...]:
    source = f"{plain(resolved.source(key))}{_note(resolved, key)}"
    return plain(name), plain(shown(value)), source


def _note(resolved: Resolved, key: str) -> str:
    """Where something is set that nothing here has."""
    table, _, name = key.partition(".")
    if table == "training" and name in resolved.aside:
        return ", for a training by itself"
    unused = resolved.unused(key)
    return f", {unused}" if unused and resolved.source(key) != "default" else ""


def shown(value: Any) -> str:
    """The value as a person reads it; `-` where nothing is set."""
    if value is None or value == "":
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    has_tables = isinstance(value, list) and any(isinstance(part, Mapping) for part in value)
    return cut(text, LONGEST) if has_tables else text
