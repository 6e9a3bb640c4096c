"""The product's own search, as a run of its tier uses it."""

from collections.abc import Callable, Sequence
from math import ceil, inf, nextafter

from budgets.terms import SearchTerms
from orchestrator.benchmark.contenders.api import Contender, Start, Trial
from orchestrator.benchmark.problem import Point
from orchestrator.search import Search

SIGMA0 = 0.15


class Ours:
    """P candidates a generation on one seed; recommends the mean of the last third's means."""

    def __init__(self, start: Start, sigma0: float) -> None:
        terms = SearchTerms(seed=start.seed, sigma0=sigma0, start=start.default)
        self._search = Search(terms, start.budget.population)
        self._favourites = [start.default]

    def ask(self) -> Sequence[Trial]:
        return [Trial(point) for point in self._search.ask()]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        told = fitness(scores)
        if told is None:  # nothing healthy: a run would pause
            told = [float(place) for place in range(len(trials))]
        self._search._learn(told)
        self._favourites.append(tuple(float(u) for u in self._search._es.result.xfavorite))

    def recommend(self) -> Point:
        told = self._favourites[1:] or self._favourites
        last = told[-ceil(len(told) / 3) :]
        return tuple(sum(units) / len(last) for units in zip(*last, strict=True))


def fitness(scores: Sequence[float | None]) -> list[float] | None:
    """As a run's generation has it: the failed behind every healthy one, in their order."""
    worst = max((score for score in scores if score is not None), default=None)
    if worst is None:
        return None
    told = []
    for score in scores:
        worst = nextafter(worst, inf) if score is None else worst
        told.append(worst if score is None else score)
    return told


def ours(*, sigma0: float = SIGMA0) -> Callable[[Start], Contender]:
    return lambda start: Ours(start, sigma0)
