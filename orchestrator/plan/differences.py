"""Where two plans differ, and what a search takes over from earlier runs, in words."""

from collections.abc import Iterator, Sequence
from typing import Any

from budgets.plan import Plan, Source
from objectives.settings import shown

MOST_SHOWN = 4

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
        texts = shown(recorded), shown(wanted)
        if texts[0] == texts[1]:  # both are cut
            texts = f"...{str(recorded)[-40:]}", f"...{str(wanted)[-40:]}"
        yield f"{name}: {' -> '.join(texts)}"


def in_short(changed: Sequence[str]) -> str:
    """Return the first few differences, without those that follow from others."""
    changed = [one for one in changed if not one.startswith(DERIVED)] or changed
    rest = len(changed) - MOST_SHOWN
    return "; ".join([*changed[:MOST_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])


# What a search takes over

VERDICTS = {"": "has no verdict", "go_persists": "said Go that persists", "go": "said Go"}


def beginning(plan: Plan) -> str:
    """Return the run that a search follows; empty without."""
    if (source := plan.source) is None:
        return ""
    new = f"with {', '.join(source.added)}" if source.added else "the same knobs on more seeds"
    return f"It follows {source.run_id}, which {_verdict(source)}, {new}."


def objection(source: Source, rule: str) -> str:
    """Return what the rule `go` or `unproven_knobs` objects to in following that run."""
    if rule == "go":
        return f"phase 2 follows a Go, and {source.run_id} {_verdict(source)}"
    names = ", ".join(source.unproven)
    return f"no finished check has shown that these knobs move the score: {names}"


def _verdict(source: Source) -> str:
    return VERDICTS.get(source.grade, "said No-Go")
