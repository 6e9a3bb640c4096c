"""A configuration file and `--set`, as values by dotted key: nothing is believed yet."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from budgets.terms import Thresholds
from objectives.settings import unknown
from orchestrator.config.sections import SECTIONS, Top

Values = dict[str, Any]
"""By dotted key, `search.tier`; one above all tables has no dot."""

TRAINING, FACTORS, THRESHOLDS, SLURM = "training", "factors", "thresholds", "slurm"
FREE = (TRAINING, FACTORS, SLURM)
"""Tables whose keys others know."""

TABLES = (TRAINING, *SECTIONS, THRESHOLDS, FACTORS, SLURM)
LARGEST = 1 << 20
"""Bytes of such a file: a longer one is another file."""


def read_document(file: Path) -> Values:
    """The values of a TOML file. Raises ValueError, naming file and key, on what may not be there.

    Of `[training]`, `[factors]` and `[slurm]` the keys are not looked at.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"{file}: expected {LARGEST} bytes at most: this is another file")
        document = tomllib.loads(data.decode())
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{file} is no TOML file: {error}") from error
    values = dict(flattened(document, str(file)))
    for key in values:
        check_key(key, str(file))
    return values


def flattened(document: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """Each value of a document by its dotted key. Raises ValueError where a table is none."""
    for name, value in document.items():
        if name not in TABLES:
            yield name, value
        elif not isinstance(value, dict):
            raise ValueError(f"{place}: {name}: expected a table [{name}], got {value!r}")
        else:
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
            if name == "campaign" and not value:
                yield "campaign.name", None  # a table that is there and says nothing


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
    homes = [table for table, section in SECTIONS.items() if key in section.keys()]  # noqa: SIM118
    if homes:
        raise ValueError(f"{place}: {key} belongs below a line [{homes[0]}]")
    raise unknown(f"key ({place})", key, (*Top.model_fields, *TABLES))


def assigned(assignments: Sequence[str]) -> Values:
    """The values of "a.b=c"; a key without a dot is one of `[training]`.

    A value that is no JSON is text. Raises ValueError on what is no assignment, or made twice.
    """
    values: Values = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        key = name.strip()
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, got {assignment!r}")
        if "." not in key and key not in Top.model_fields:
            key = f"{TRAINING}.{key}"
        check_key(key, "--set")
        if key in values:
            raise ValueError(f"--set: {name.strip()} is given twice")
        values[key] = _json_or_text(name, text)
    return values


def _json_or_text(key: str, value: str) -> Any:
    """What `value` says as JSON, or itself. Raises ValueError on an object with a key twice."""

    def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise _TwinKeysError(f"--set: {key} names a key twice: {value}")
        return dict(pairs)

    try:
        return json.loads(value, object_pairs_hook=each_key_once, parse_constant=str)
    except _TwinKeysError:
        raise
    except (ValueError, RecursionError):  # no JSON, or none that anybody means
        return value


class _TwinKeysError(ValueError):
    """JSON that says two things about one key."""
