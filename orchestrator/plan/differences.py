"""Where two plans differ."""

from collections.abc import Iterator, Sequence
from typing import Any

from budgets.plan import Plan
from objectives.settings import cut

LONGEST_SHOWN, MOST_SHOWN = 40, 4  # characters of a value, differences

DERIVED = ("objective_fingerprint:", "space.", "search.start", "nominal.", "resolved.")
"""Fields that follow from others: shown only if nothing else differs."""


def differences(recorded: Plan, wanted: Plan) -> list[str]:
    """Return where two plans differ, as `field: recorded value -> wanted value`.

    Reasons are left out: the envelopes differ too.
    """
    plans = (plan.model_dump(mode="json", exclude={"reasons"}) for plan in (recorded, wanted))
    return list(differing("", *plans))


def differing(name: str, recorded: Any, wanted: Any) -> Iterator[str]:
    """Yield where two JSON values called `name` differ."""
    if isinstance(recorded, list) and isinstance(wanted, list) and len(recorded) == len(wanted):
        recorded, wanted = dict(enumerate(recorded)), dict(enumerate(wanted))
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        for key in {**recorded, **wanted}:
            inner = f"{name}.{key}" if name else key
            yield from differing(inner, recorded.get(key), wanted.get(key))
    elif recorded != wanted:
        texts = [str(recorded), str(wanted)]
        if texts[0] == texts[1]:
            texts = [repr(recorded), repr(wanted)]
        shown = [cut(text, LONGEST_SHOWN) for text in texts]
        if shown[0] == shown[1]:
            shown = [f"...{text[-LONGEST_SHOWN:]}" for text in texts]
        yield f"{name}: {' -> '.join(shown)}"


def in_short(changed: Sequence[str]) -> str:
    """Return the first few differences, without those that follow from others."""
    changed = [one for one in changed if not one.startswith(DERIVED)] or changed
    rest = len(changed) - MOST_SHOWN
    return "; ".join([*changed[:MOST_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])
