"""Whether a run may follow the one it names: a Go, and knobs that were shown to matter."""

from collections.abc import Iterator

from budgets.events import Grade
from budgets.rules.table import FOLLOWS_A_GO, UNPROVEN_KNOBS, Reading
from budgets.terms import Source

GOES: tuple[Grade, ...] = ("go", "go_persists")

BEGINNING = (FOLLOWS_A_GO.name, UNPROVEN_KNOBS.name)
"""Rules that a person may override before the run that they hold up has begun."""


def readings(source: Source) -> Iterator[Reading]:
    """What speaks for or against a run that follows `source`; a person may let each pass."""
    is_go = source.grade in GOES
    said = f"{source.run_id} {verdict(source.grade)}"
    why = said if is_go else f"phase 2 follows a Go, and {said}"
    yield FOLLOWS_A_GO.reads(0, float(is_go), 1.0, why, fires=not is_go)
    if source.added:
        names = ", ".join(source.unproven)
        why = f"no finished check has shown that these knobs move the score: {names}"
        if not source.unproven:
            why = f"all {len(source.added)} new knobs were shown to move the score"
        unproven = len(source.unproven)
        yield UNPROVEN_KNOBS.reads(0, unproven, 0, why, fires=bool(unproven))


def verdict(grade: str) -> str:
    """A grade as what the run said; it is empty for a run that has none."""
    words = {
        "": "has come to no verdict",
        "go_persists": "said Go that persists",
        "go": "said Go",
        "no_go": "said No-Go",
    }
    return words.get(grade, f"said {grade}")


def in_words(source: Source) -> str:
    """Which run is followed, and what is new."""
    new = "the same knobs on more seeds"
    if source.added:
        new = f"with {len(source.added)} more knobs, {', '.join(source.added)}"
    return f"It follows {source.run_id}, which {verdict(source.grade)}, {new}."
