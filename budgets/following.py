"""Whether a run may follow the one it names: a Go, and knobs that were shown to matter."""

from collections.abc import Iterator
from typing import NamedTuple

from budgets.events import Grade
from budgets.terms import Source

GOES: tuple[Grade, ...] = ("go", "go_persists")

FOLLOWING_RULES = ("go", "unproven_knobs")
"""What a person may override before a run that follows another has begun."""


class Objection(NamedTuple):
    """A rule against following, with its numbers."""

    rule: str
    observed: float
    limit: float
    why: str


def objections(source: Source) -> Iterator[Objection]:
    """What speaks against a run that follows `source`; a person may let each pass, on record."""
    if source.grade not in GOES:
        why = f"phase 2 follows a Go, and {source.run_id} {verdict(source.grade)}"
        yield Objection("go", 0, 1, why)
    if source.unproven:
        names = ", ".join(source.unproven)
        why = f"no finished check has shown that these knobs move the score: {names}"
        yield Objection("unproven_knobs", len(source.unproven), 0, why)


def verdict(grade: str) -> str:
    """A grade as what the run said; it is empty for a run that has none."""
    words = {
        "": "has come to no verdict",
        "go_persists": "said Go that persists",
        "go": "said Go",
        "no_go": "said No-Go",
        "plumbing": "could only say that the plumbing works",
    }
    return words.get(grade, f"said {grade}")


def in_words(source: Source) -> str:
    """Which run is followed, and what is new."""
    new = "the same knobs on more seeds"
    if source.added:
        new = f"with {len(source.added)} more knobs, {', '.join(source.added)}"
    return f"It follows {source.run_id}, which {verdict(source.grade)}, {new}."
