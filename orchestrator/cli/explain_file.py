"""Every value of a configuration, and where it is from, and its knobs; as JSON too."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from budgets.plain import plain
from budgets.table import table
from budgets.words import counted
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import LONGEST_SHOWN, Config, as_shown
from orchestrator.planning.plan import check_beginning


def as_dict(resolved: Config) -> dict[str, Any]:
    """Each key with value and source."""
    return {
        key: {"value": value, "source": resolved.source(key)}
        for key, value in resolved.all_values().items()
    }


def to_markdown(resolved: Config) -> Iterator[str]:
    """A table for each table of the file: of what is set, then of the defaults."""
    every = resolved.all_values()
    defaults = {key: value for key, value in every.items() if resolved.source(key) == "default"}
    yield from _tables(resolved, {k: v for k, v in every.items() if k not in defaults})
    yield from ("", "# Defaults")
    yield from _tables(resolved, defaults)


def _tables(resolved: Config, values: Mapping[str, Any]) -> Iterator[str]:
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
    if isinstance(value, Mapping) and len(json.dumps(value, default=str)) > LONGEST_SHOWN:
        yield from ((f"{name}.{inner}", part) for inner, part in value.items())
    else:
        yield name, value


def _row(resolved: Config, key: str, name: str, value: Any) -> tuple[str, ...]:
    source = f"{plain(resolved.source(key))}{_note(resolved, key)}"
    return plain(name), plain(as_shown(value)), source


def _note(resolved: Config, key: str) -> str:
    """Where something is set that nothing here has."""
    table, _, name = key.partition(".")
    if table == "training" and name in resolved.alone:
        return ", for a training by itself"
    unused = resolved.unused(key)
    return f", {unused}" if unused and resolved.source(key) != "default" else ""


def explain_file(resolved: Config, *, as_json: bool) -> None:
    """Print every value with its origin, and what the file amounts to.

    Raises ValueError on what no command could begin.
    """
    check_beginning(resolved)
    objective = resolved.tuned
    rows = knob_rows(objective)
    file = None if resolved.file is None else str(resolved.file)
    document: dict[str, Any] = {"file": file, "values": as_dict(resolved), "knobs": rows}
    document["objective"] = objective.spec.model_dump(mode="json")
    title = plain(file or "The defaults")
    lines = [f"# {title}", *to_markdown(resolved), "", *knob_table(kind(objective.spec), rows)]
    if resolved.campaign is not None:
        from orchestrator.campaign.plan import check, runs_document, runs_page

        check(resolved)
        document["campaign"] = runs_document(resolved)
        lines += ["", *runs_page(resolved)]
    if as_json:
        print_json(document)
    else:
        print_markdown("\n".join(lines))


def knob_rows(objective: Objective) -> list[dict[str, Any]]:
    """One row a knob, in the order of the space."""
    return [
        {
            "name": knob.name,
            "kind": knob.kind,
            "low": knob.decode(0.0),
            "high": knob.decode(1.0),
            "baseline": knob.typed(knob.baseline),
        }
        for knob in objective.space.knobs
    ]


def knob_table(name: str, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The rows for a person."""
    yield from (f"# {plain(name)}: {counted(len(rows), 'knob')}", "")
    yield from table(("knob", "kind", ">low", ">high", ">baseline"), map(_cells, rows))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ends = (f"{row[name]:.4g}" for name in ("low", "high", "baseline"))
    return row["name"], row["kind"], *ends
