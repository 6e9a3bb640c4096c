"""The same search where nothing goes wrong but evaluations by themselves: what must come out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from budgets.events import GenerationTold, Status
from budgets.state import RunState
from orchestrator.simulation.journal import Evaluation


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run found."""

    points: tuple[tuple[tuple[float, ...], ...], ...]
    results: Mapping[Evaluation, tuple[Status, float | None]]
    told: tuple[GenerationTold, ...]

    @classmethod
    def of(cls, state: RunState) -> Self:
        """What the run found."""
        results = {
            (g.number, r.candidate, r.seed): (r.status, r.score)
            for g in state.generations
            for r in g.results()
        }
        told = tuple(g.told for g in state.generations if g.told is not None)
        return cls(tuple(g.points for g in state.generations), results, told)
