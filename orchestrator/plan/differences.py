"""Where two plans differ."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from budgets.plan import Plan
from objectives.settings import cut

INFORMATIVE = ("commit", "dirty")
"""Of the provenance: for the record. To commit a file changes no score, and what decides one is
compared by its own hash."""

LONGEST_SHOWN, SHORTEST_HASH = 60, 12
"""Of a value that differs: a matrix of a hundred numbers tells nobody anything."""

MOST_SHOWN = 4

WORKED_OUT = ("nominal.", "resolved.")
"""Of a plan: from what was asked for, which is said first."""

FOLLOWS = (
    ("objective.", ("objective_fingerprint:", "space.", "search.start")),
    ("objective.settings.argv", ("objective.settings.code",)),
)
"""Where the first differs the others do too, which says nothing more."""

_HASH = re.compile("[0-9a-f]{32,}")


def differences(recorded: Plan, wanted: Plan) -> list[str]:
    """Where two plans differ, as `field: recorded value -> wanted value`.

    The reasons are left out: the envelopes say that they differ, and a run keeps its first reason.
    So is what the provenance only informs of.
    """
    compared = [
        plan.model_dump(mode="json", exclude={"reasons"})
        | {"provenance": deciding(plan.provenance)}
        for plan in (recorded, wanted)
    ]
    return list(differing("", *compared))


def deciding(provenance: Mapping[str, str | int]) -> dict[str, str | int]:
    """What of a provenance may decide a score."""
    return {name: value for name, value in provenance.items() if name not in INFORMATIVE}


def differing(name: str, recorded: Any, wanted: Any) -> Iterator[str]:
    """The same of two JSON values that are called `name`."""
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        for key in {**recorded, **wanted}:
            inner = f"{name}.{key}" if name else key
            yield from differing(inner, recorded.get(key), wanted.get(key))
    elif isinstance(recorded, list) and isinstance(wanted, list) and len(recorded) == len(wanted):
        for place, (one, other) in enumerate(zip(recorded, wanted, strict=True)):
            yield from differing(f"{name}[{place}]", one, other)
    elif recorded != wanted:
        values = (str, repr)[str(recorded) == str(wanted)]  # 1 and "1"
        texts = (values(recorded), values(wanted))
        shown = [cut(t, SHORTEST_HASH if _HASH.fullmatch(t) else LONGEST_SHOWN) for t in texts]
        if shown[0] == shown[1]:
            shown = [f"...{text[-LONGEST_SHOWN:]}" for text in texts]
        yield f"{name}: {' -> '.join(shown)}"


def in_short(changed: Sequence[str]) -> str:
    """The first few differences, without those that only follow from others."""
    for cause, effects in FOLLOWS:
        if any(one.startswith(cause) for one in changed):
            changed = [one for one in changed if not one.startswith(effects)]
    changed = sorted(changed, key=lambda one: one.startswith(WORKED_OUT))
    rest = len(changed) - MOST_SHOWN
    return "; ".join([*changed[:MOST_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])
