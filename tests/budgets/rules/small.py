"""Plans of a size, and which rules fire."""

from typing import TYPE_CHECKING, Any

from budgets.rules.triggers import judge
from budgets.terms import Caps, Envelope

if TYPE_CHECKING:
    from tests.budgets.conftest import Story


def envelope(population: int, generations: int = 2) -> dict[str, Any]:
    """Fields of a plan of that size, with its cap on evaluations."""
    resolved = Envelope(population=population, generations=generations, seeds_per_candidate=1)
    return {"resolved": resolved, "caps": Caps(evaluations=resolved.evaluations)}


def rules(story: "Story") -> list[str]:
    return [trigger.rule for trigger in judge(story.state).triggers]
