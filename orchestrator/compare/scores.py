"""Whether scores of several runs are of one measure, and what sets them apart where not."""

from collections.abc import Iterator, Sequence

from budgets.words import listed
from orchestrator.compare.model import Fact, Part, Scores, Side

DECIDE: tuple[tuple[Part, str], ...] = (
    ("objective", "the objective or its settings"),
    ("data", "the data"),
    ("space", "the space of knobs"),
)
"""What a fingerprint is of, as far as it is on record."""

MOST_NAMED = 6


def scores(runs: Sequence[Side], facts: Sequence[Fact]) -> Scores:
    """Runs whose objectives have the same fingerprint can be compared, and no others.

    The fingerprint is of everything that decides a score: settings, space, data, code.
    """
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(run.fingerprint or f"none of {number}", []).append(number)
    found = tuple(map(tuple, groups.values()))
    return Scores(
        groups=found,
        why_not=() if len(found) == 1 else tuple(_why_not(facts)),
        mind=tuple(_mind(facts)) if any(len(group) > 1 for group in found) else (),
    )


def _why_not(facts: Sequence[Fact]) -> Iterator[str]:
    found = False
    for part, what in DECIDE:
        names = [fact.name for fact in facts if fact.part == part and fact.differs]
        if names:
            found = True
            yield f"{what}: {listed(names, MOST_NAMED + 1)}"
    if not found:
        yield "the objective's code: nothing else on record differs"


def _mind(facts: Sequence[Fact]) -> Iterator[str]:
    """What moves the last digits of a score, or its luck, and differs."""
    differing = {(fact.part, fact.name) for fact in facts if fact.differs}
    versions = [
        name
        for part, name in differing
        if part == "machine" and name not in ("devices", "calibration")
    ]
    if ("machine", "devices") in differing:
        yield "they ran on different devices, which may move the last digits of a score"
    if versions:
        yield f"versions differ: {listed(sorted(versions), MOST_NAMED + 1)}"
    if ("search", "evaluation seed") in differing:
        yield "their evaluation seeds differ: no two evaluations had the same luck"
    if ("search", "seeds a candidate") in differing:
        yield "a candidate's score is a mean of more seeds in some than in others"
