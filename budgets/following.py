"""Which run a run follows, and what speaks against it, in words."""

from budgets.formatting import counted
from budgets.plan import Plan, Source


def verdict(grade: str) -> str:
    """A grade as what the run said; it is empty for a run that has none."""
    words = {
        "": "has come to no verdict",
        "go_persists": "said Go that persists",
        "go": "said Go",
        "no_go": "said No-Go",
    }
    return words.get(grade, f"said {grade}")


def beginning(plan: Plan) -> str | None:
    """Where a search begins that knows something beforehand: of which run, which settings."""
    said = []
    if plan.source is not None:
        said.append(in_words(plan.source))
    if plan.search is not None and plan.search.known:
        count = len(plan.search.known)
        which = "candidate is a known setting" if count == 1 else "candidates are known settings"
        number = "" if count == 1 else f" {count}"
        said.append(f"The first{number} {which}.")
    return " ".join(said) or None


def in_words(source: Source) -> str:
    """Which run is followed, and what is new."""
    new = "the same knobs on more seeds"
    if count := len(source.added):
        new = f"with {counted(count, 'more knob')}, {', '.join(source.added)}"
    return f"It follows {source.run_id}, which {verdict(source.grade)}, {new}."


def objection(source: Source, rule: str) -> str:
    """What a rule has against following that run: `go`, or `unproven_knobs`."""
    if rule == "go":
        return f"phase 2 follows a Go, and {source.run_id} {verdict(source.grade)}"
    names = ", ".join(source.unproven)
    return f"no finished check has shown that these knobs move the score: {names}"
