"""One run's configuration as a file of its own, with every value that decides it."""

from collections.abc import Mapping
from typing import Any

import tomlkit

from budgets.plain import printable


def to_toml(values: Mapping[str, Any], *comments: str) -> str:
    """TOML with these values by dotted key; what is None is left to its default."""
    document = tomlkit.document()
    for comment in comments:
        document.add(tomlkit.comment(" ".join(printable(comment).split())))
    tables: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        table, dot, name = key.partition(".")
        if value is None:
            continue
        if dot:
            tables.setdefault(table, {})[name] = value
        else:
            document.add(key, tomlkit.item(value))
    for table, inner in tables.items():
        document.add(tomlkit.nl())
        document.add(table, _table(inner))
    return tomlkit.dumps(document)


def _table(values: Mapping[str, Any]) -> tomlkit.items.Table:
    table = tomlkit.table()
    for name, value in values.items():
        table.add(name, _without_none(value))
    return table


def _without_none(value: Any) -> Any:
    """TOML has no null: what is not said is left out."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return value
