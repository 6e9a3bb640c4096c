"""The same search where nothing goes wrong but evaluations by themselves: what must come out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from budgets.events import Decided, GenerationTold, Status
from budgets.state import Panel, RunState
from budgets.terms import PanelName
from tests.simulation.journal import Evaluation


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run found."""

    points: tuple[tuple[tuple[float, ...], ...], ...]
    panels: Mapping[tuple[PanelName, int], Panel]
    decided: Decided | None
    results: Mapping[Evaluation, tuple[Status, float | None]]
    told: tuple[GenerationTold, ...]

    @classmethod
    def of(cls, state: RunState) -> Self:
        """What the run found."""
        results = {
            (b.panel, b.number, r.candidate, r.seed): (r.status, r.score)
            for b in state.batches()
            for r in b.results()
        }
        told = tuple(g.told for g in state.generations if g.told is not None)
        points = tuple(g.points for g in state.generations)
        return cls(points, state.panels, state.decided, results, told)
