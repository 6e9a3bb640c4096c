"""Where two plans differ."""

from collections.abc import Iterator, Mapping
from typing import Any

from budgets.terms import (
    Plan,
)
from objectives.settings import cut

INFORMATIVE = ("commit", "dirty")
"""Of the provenance: for the record. To commit a file changes no score, and what decides one is
compared by its own hash."""

LONGEST_SHOWN = 120
"""Of a value that differs: a matrix of a hundred numbers tells nobody anything."""


def differences(recorded: Plan, wanted: Plan) -> list[str]:
    """Where two plans differ, as `field: recorded value -> wanted value`.

    The reasons are left out: the envelopes say that they differ, and a run keeps its first reason.
    So is what the provenance only informs of.
    """
    return list(differing("", *(_compared(plan) for plan in (recorded, wanted))))


def _compared(plan: Plan) -> dict[str, Any]:
    compared = plan.model_dump(mode="json", exclude={"reasons"})
    return compared | {"provenance": deciding(plan.provenance)}


def deciding(provenance: Mapping[str, str | int]) -> dict[str, str | int]:
    """What of a provenance may decide a score."""
    return {name: value for name, value in provenance.items() if name not in INFORMATIVE}


def differing(name: str, recorded: Any, wanted: Any) -> Iterator[str]:
    """The same of two JSON values that are called `name`."""
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        for key in {**recorded, **wanted}:
            inner = f"{name}.{key}" if name else key
            yield from differing(inner, recorded.get(key), wanted.get(key))
    elif recorded != wanted:
        yield f"{name}: {cut(str(recorded), LONGEST_SHOWN)} -> {cut(str(wanted), LONGEST_SHOWN)}"
