"""A configuration file and `--set`, as values by dotted key: nothing is believed yet."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from budgets.terms import Thresholds
from objectives.files import read_toml
from objectives.settings import TwinKeysError, check_writable, each_key_once, shown, unknown
from orchestrator.config.sections import SECTIONS, Top

Values = dict[str, Any]
"""By dotted key, `search.tier`; one above all tables has no dot."""

TRAINING, FACTORS, THRESHOLDS, SLURM = "training", "factors", "thresholds", "slurm"

TABLES = (TRAINING, *SECTIONS, THRESHOLDS, FACTORS, SLURM)

DEEPEST = 16
"""Levels of tables and lists in a value: nothing that is asked for here has more than three."""

LONGEST = 120
"""Characters of a value that a message repeats."""


def read_document(file: Path) -> Values:
    """The values of a TOML file. Raises ValueError, naming file and key, on what may not be there.

    Of `[training]`, `[factors]` and `[slurm]` the keys are not looked at.
    """
    values = each_once(flattened(read_toml(file, str(file)), str(file)), str(file))
    for key, value in values.items():
        check_key(key, str(file))
        _check_plain(f"{file}: {key}", value)
        check_writable(f"{file}: {key}", value)
    return values


def _check_plain(place: str, value: Any, levels: int = DEEPEST) -> None:
    """Raises ValueError on what no JSON document can hold."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{place}: expected a number of at most 64 bits, got {shown(value)}")
    if isinstance(value, str) and not _is_text(value):
        raise ValueError(f"{place}: expected text in UTF-8, got {shown(value)}")
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise ValueError(f"{place}: expected tables and lists of at most {DEEPEST} levels")
    inner = (*value, *value.values()) if isinstance(value, dict) else value
    for part in inner:
        _check_plain(place, part, levels - 1)


def _is_text(value: str) -> bool:
    """Whether it can be encoded: the half of a pair of surrogates cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def each_once(pairs: Iterable[tuple[str, Any]], place: str) -> Values:
    """The pairs as values. Raises ValueError on a key that is there twice, in whatever words."""
    values: Values = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{place}: {key} is given twice")
        values[key] = value
    return values


def flattened(document: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """Each value of a document by its dotted key. Raises ValueError where a table is none."""
    for name, value in document.items():
        if name not in TABLES:
            yield name, value
        elif not isinstance(value, dict):
            raise ValueError(f"{place}: {name}: expected a table [{name}], got {shown(value)}")
        else:
            own = _factors(value) if name == FACTORS else value.items()
            yield from ((f"{name}.{key}", inner) for key, inner in own)
    says_nothing = any(document.get(name) == {} for name in ("campaign", FACTORS))
    if says_nothing and not document.get("campaign"):
        yield "campaign.name", None  # it is a campaign all the same


def _factors(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A factor `search.sigma0 = [...]` by that key: TOML reads the dot as a table of its own."""
    for name, value in table.items():
        if name in TABLES and isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value


def check_key(key: str, place: str) -> None:
    """Raises ValueError unless a configuration may have that key: it names the nearest."""
    table, dot, name = key.partition(".")
    if not dot:
        _check_top(key, place)
    elif table not in TABLES:
        raise unknown(f"table ({place})", table, TABLES)
    elif table in SECTIONS and name not in (known := SECTIONS[table].keys()):
        raise unknown(f"key in [{table}] ({place})", name, known)
    elif table == THRESHOLDS and name not in Thresholds.model_fields:
        raise unknown(f"key in [{table}] ({place})", name, Thresholds.model_fields)


def _check_top(key: str, place: str) -> None:
    if key in Top.model_fields:
        return
    if homes := homes_of(key):
        lines = " or ".join(f"[{table}]" for table in homes)
        raise ValueError(f"{place}: {key} belongs below a line {lines}")
    error = unknown(f"key ({place})", key, (*Top.model_fields, *TABLES))
    raise ValueError(f"{error}. A setting of the objective belongs below a line [{TRAINING}]")


def homes_of(key: str) -> tuple[str, ...]:
    """The tables that have a key of that name."""
    homes = [table for table, section in SECTIONS.items() if key in section.keys()]  # noqa: SIM118
    return (*homes, THRESHOLDS) if key in Thresholds.model_fields else tuple(homes)


def assigned(assignments: Sequence[str]) -> Values:
    """The values of "a.b=c"; a key without a dot is one of `[training]`.

    A value that is no JSON is text. Raises ValueError on what is no assignment, or made twice.
    """
    values: Values = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        key = name.strip()
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, got {shown(assignment)}")
        if "." not in key and key not in Top.model_fields:
            key = f"{TRAINING}.{key}"
        check_key(key, "--set")
        if key in values:
            raise ValueError(f"--set: {name.strip()} is given twice")
        value = _json_or_text(name, text)
        _check_plain(f"--set: {key}", value)
        if not key.startswith(f"{TRAINING}."):  # of those the objective says so itself
            check_writable(f"--set: {key}", value)
        values[key] = value
    return values


def _json_or_text(key: str, value: str) -> Any:
    """What `value` says as JSON, or itself. Raises ValueError on an object with a key twice."""
    try:
        return json.loads(value, object_pairs_hook=each_key_once, parse_constant=str)
    except TwinKeysError:
        raise ValueError(f"--set: {key} names a key twice: {shown(value)}") from None
    except (ValueError, RecursionError):  # no JSON, or none that anybody means
        return value


def as_assigned(value: Any) -> str:
    """What `--set KEY=` reads back as that value: JSON, or text that is none."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text) if isinstance(value, str) and _json_or_text("", text) != text else text
