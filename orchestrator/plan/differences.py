"""Where two plans differ."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from budgets.plan import Plan
from objectives.settings import cut

INFORMATIVE = ("commit", "dirty")
"""Keys of the provenance that decide no score: what does is compared by its own hash."""

LONGEST_SHOWN, SHORTEST_HASH = 60, 12  # characters
MOST_SHOWN = 4

DERIVED = ("objective_fingerprint:", "space.", "search.start", "nominal.", "resolved.")
"""Fields that follow from others: shown only if nothing else differs."""

_HASH = re.compile("[0-9a-f]{32,}")


def differences(recorded: Plan, wanted: Plan) -> list[str]:
    """Return where two plans differ, as `field: recorded value -> wanted value`.

    Reasons are left out (the envelopes differ too), and so is provenance that decides no score.
    """
    compared = [
        plan.model_dump(mode="json", exclude={"reasons"})
        | {"provenance": deciding(plan.provenance)}
        for plan in (recorded, wanted)
    ]
    return list(differing("", *compared))


def deciding(provenance: Mapping[str, str | int]) -> dict[str, str | int]:
    """Return the part of a provenance that may decide a score."""
    return {name: value for name, value in provenance.items() if name not in INFORMATIVE}


def differing(name: str, recorded: Any, wanted: Any) -> Iterator[str]:
    """Yield where two JSON values called `name` differ."""
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        for key in {**recorded, **wanted}:
            inner = f"{name}.{key}" if name else key
            yield from differing(inner, recorded.get(key), wanted.get(key))
    elif isinstance(recorded, list) and isinstance(wanted, list) and len(recorded) == len(wanted):
        for place, (one, other) in enumerate(zip(recorded, wanted, strict=True)):
            yield from differing(f"{name}[{place}]", one, other)
    elif recorded != wanted:
        texts = (repr(recorded), repr(wanted)) if str(recorded) == str(wanted) else None
        texts = texts or (str(recorded), str(wanted))
        shown = [cut(t, SHORTEST_HASH if _HASH.fullmatch(t) else LONGEST_SHOWN) for t in texts]
        if shown[0] == shown[1]:
            shown = [f"...{text[-LONGEST_SHOWN:]}" for text in texts]
        yield f"{name}: {' -> '.join(shown)}"


def in_short(changed: Sequence[str]) -> str:
    """Return the first few differences, without those that follow from others."""
    changed = [one for one in changed if not one.startswith(DERIVED)] or changed
    rest = len(changed) - MOST_SHOWN
    return "; ".join([*changed[:MOST_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])
