"""Thresholds that a file or an option changes."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from budgets.terms import Thresholds
from objectives.settings import in_words, unknown

TABLE = "thresholds"
"""Of a file that holds other things too."""


def read_changes(file: Path) -> dict[str, Any]:
    """The thresholds in a TOML file: its keys, or those of its table `[thresholds]`.

    Raises ValueError on anything else in it, saying what and where.
    """
    content = _read_toml(file)
    table = content.get(TABLE)
    if isinstance(table, dict):
        if others := [name for name in content if name != TABLE]:
            raise ValueError(
                f"--thresholds {file}: expected [{TABLE}] alone, or keys without a table, got "
                f"{others[0]!r} beside it"
            )
        content = table
    for name in content:
        if name not in Thresholds.model_fields:
            error = unknown("threshold", name, Thresholds.model_fields)
            raise ValueError(f"--thresholds {file}: {error}")
    try:
        checked = Thresholds.model_validate(content, strict=True)
    except ValidationError as error:
        raise ValueError(f"--thresholds {file}: {in_words(error)}") from error
    return {name: getattr(checked, name) for name in content}


def _read_toml(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ValueError(f"--thresholds {file}: expected a TOML file, and there is none")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"--thresholds {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # no text, or no TOML
        raise ValueError(f"--thresholds {file} is no TOML: {error}") from error
