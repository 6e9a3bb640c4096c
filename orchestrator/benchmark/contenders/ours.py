"""The product's own searches, as a run of their tier uses them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from budgets.events import GenerationTold
from budgets.state import Generation
from budgets.terms import SearchMethod, SearchTerms
from orchestrator.benchmark.contenders.api import Contender, Start, Trial
from orchestrator.benchmark.problem import Point
from orchestrator.plan import SIGMA0
from orchestrator.search import Search


@dataclass(slots=True, kw_only=True)
class Evaluated(Generation):
    """A generation whose scores are known without attempts at them."""

    known: tuple[float | None, ...]

    def scores(self) -> list[float | None]:
        return list(self.known)


class Ours:
    """P candidates a generation on one seed; recommends what a run of tier min would."""

    def __init__(self, start: Start, method: SearchMethod, sigma0: float) -> None:
        terms = SearchTerms(method=method, seed=start.seed, sigma0=sigma0, start=start.default)
        self._search = Search(terms, start.budget.population)
        self._default = start.default
        self._told: list[GenerationTold] = []

    def ask(self) -> Sequence[Trial]:
        return [Trial(point) for point in self._search.ask()]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        if all(score is None for score in scores):  # a run would pause
            scores = [float(place) for place in range(len(trials))]
        generation = Evaluated(
            self._search.generation, self._search.ask(), seeds=(), known=tuple(scores)
        )
        self._told.append(self._search.tell(generation))

    def recommend(self) -> Point:
        """As `budgets.verdict.finalists.stood_for`, for a search that did not begin anew."""
        if not self._told:
            return self._default
        if self._told[-1].guided is not None:
            return self._told[-1].favourite
        last = [told.favourite for told in self._told[-ceil(len(self._told) / 3) :]]
        return tuple(sum(units) / len(last) for units in zip(*last, strict=True))


def ours(
    method: SearchMethod = "guided", *, sigma0: float | None = None
) -> Callable[[Start], Contender]:
    step = SIGMA0[method] if sigma0 is None else sigma0
    return lambda start: Ours(start, method, step)
