"""The product's own search, asked and told as a run of its tier does it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from budgets.state import Generation, RunState
from budgets.terms import SearchMethod, SearchTerms
from budgets.verdict.finalists import stood_for
from orchestrator.planning.request import SIGMA0
from orchestrator.search import Search
from scripts.bench.contenders.api import Contender, Start, Trial
from scripts.bench.problem import Point


@dataclass(slots=True, kw_only=True)
class _Scored(Generation):
    """Scores without attempts."""

    found: tuple[float | None, ...]

    def scores(self) -> list[float | None]:
        return list(self.found)


@dataclass(slots=True)
class _Story:
    """Of a run's state, what its recommendation is made from."""

    told: list[Generation] = field(default_factory=list)


class Ours:
    """P candidates a generation, on one seed; recommends what the search stands for."""

    def __init__(self, start: Start, method: SearchMethod, sigma0: float) -> None:
        terms = SearchTerms(method=method, seed=start.seed, sigma0=sigma0, start=start.default)
        self._search = Search(terms, start.budget.population)
        self._default, self._story = start.default, _Story()
        self._is_paused = False

    def ask(self) -> Sequence[Trial]:
        if self._is_paused:
            return ()
        batch = self._search.seeded(self._search.generation)
        return [Trial(point, batch=batch) for point in self._search.ask()]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        if all(score is None for score in scores):
            self._is_paused = True  # as a run is, when nothing of a generation is healthy
            return
        points, found = tuple(trial.point for trial in trials), tuple(scores)
        number = self._search.generation
        generation = _Scored(number=number, points=points, seeds=(1,), found=found)
        told = self._search.tell(generation)
        self._story.told.append(replace(generation, told=told))

    def recommend(self) -> Point:
        return stood_for(cast("RunState", self._story)) or self._default


def ours(method: SearchMethod, sigma0: float | None = None) -> Callable[[Start], Contender]:
    """By its method and first step; without one, the method's own."""
    return lambda start: Ours(start, method, SIGMA0[method] if sigma0 is None else sigma0)
