"""Thresholds that a file or an option changes."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from budgets.terms import Thresholds
from objectives.files import read_toml
from objectives.settings import in_words, unknown

TABLE = "thresholds"
"""Of a file that holds other things too."""


def read_changes(file: Path) -> dict[str, Any]:
    """The thresholds in a TOML file: its keys, or those of its table `[thresholds]`.

    Raises ValueError on anything else in it, saying what and where.
    """
    content = read_toml(file, f"--thresholds {file}")
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
