"""Which run a phase 2 follows, and what a rule objects to, in words."""

from budgets.formatting import counted
from budgets.plan import Plan, Source


def verdict(grade: str) -> str:
    """What a run said, by its grade; the grade is empty without a verdict."""
    words = {
        "": "has come to no verdict",
        "go_persists": "said Go that persists",
        "go": "said Go",
        "no_go": "said No-Go",
    }
    return words[grade]


def beginning(plan: Plan) -> str | None:
    """What a search begins with: the run that it follows, and known settings; None without."""
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
    """What the rule `go` or `unproven_knobs` objects to in following that run."""
    if rule == "go":
        return f"phase 2 follows a Go, and {source.run_id} {verdict(source.grade)}"
    names = ", ".join(source.unproven)
    return f"no finished check has shown that these knobs move the score: {names}"
