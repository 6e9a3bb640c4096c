"""A search behind ask, tell and replay.

It is a function of its terms and the scores it was told: replaying those gives the same search, bit
for bit, and no pickle is needed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

import numpy as np

from budgets.events import GenerationTold, Guided
from budgets.plan import Configuration, SearchMethod, SearchTerms
from budgets.state import Batch, fitness
from orchestrator.records.runs import ReplayError
from orchestrator.search.directions import Chained, Independent, MirroredOrthogonal
from orchestrator.search.guide import guided
from orchestrator.search.landscape import Landscape, Point
from orchestrator.search.strategy import Strategy

_DIRECTIONS: dict[SearchMethod, type[Independent | MirroredOrthogonal | Chained]] = {
    "plain": Independent,
    "mirrored-orthogonal": MirroredOrthogonal,
    "guided": Chained,
}


class Search:
    """A search in [0, 1]^d: `ask`, then `tell` once, generation by generation."""

    def __init__(self, terms: SearchTerms, population: int) -> None:
        """Raises ValueError unless the terms' shape, if they have one, is positive definite."""
        self._terms = terms
        self._population = population
        self._generation = 0
        self._seen: list[Batch] = []  # told
        self._strategy = self._first_strategy()

    def _first_strategy(self) -> Strategy:
        terms = self._terms
        directions = _DIRECTIONS[terms.method](terms.seed)
        strategy = Strategy(terms.start, terms.sigma0, self._population, directions, terms.shape)
        if terms.known:
            strategy.propose(terms.known)
        return strategy

    @property
    def generation(self) -> int:
        """Number of the generation that is, or will be, asked."""
        return self._generation

    def ask(self) -> tuple[Point, ...]:
        """The generation's points of the unit cube. Asking twice gives the same points."""
        return tuple(tuple(float(u) for u in x) for x in self._strategy.ask())

    def distances(self) -> tuple[float, ...]:
        """How far from the mean of its distribution each candidate of `ask` was drawn."""
        return self._strategy.distances()

    def landscape(self) -> Landscape:
        """The search's distribution as it stands: what it has learned, and draws from."""
        return self._strategy.landscape()

    def tell(self, generation: Batch) -> GenerationTold:
        """Learn from a closed generation, once; says where the search stands afterwards."""
        self._check_points(generation)
        return self._tell(generation, self._modelled)

    def _tell(self, generation: Batch, adviser: "_Adviser") -> GenerationTold:
        advice = self._learn(generation, adviser)
        strategy = self._strategy
        return GenerationTold(
            generation=generation.number,
            digest=strategy.digest(),
            mean=strategy.mean,
            sigma=strategy.sigma,
            axis_ratio=strategy.axis_ratio,
            guided=advice,
        )

    def _learn(self, generation: Batch, adviser: "_Adviser") -> Guided | None:
        """Tell the strategy, and follow the adviser."""
        self._generation += 1
        before = self._strategy.sigma
        self._strategy.tell(fitness(generation.scores()))
        if self._terms.method != "guided":
            return None
        self._seen.append(generation)
        advice = adviser(before)
        if advice is not None:
            self._strategy.move(advice.centre)
            self._strategy.sigma = advice.sigma or self._strategy.sigma
        return advice

    def _modelled(self, before: float) -> Guided | None:
        """The advice of a model of all that was told, where the last step was `before`."""
        return guided(self._seen, self._population, self._strategy, before)

    def replay(self, generations: Iterable[Batch], *, with_models: bool = False) -> None:
        """Bring the search to where the recorded `generations` left it, checking every step.

        What is told is what was re-asked; what a model advised is taken from the record, or made
        again too `with_models`. Raises ReplayError at the first difference, however small.
        """
        for generation in generations:
            self._check_points(generation)
            if (told := generation.told) is None:
                continue

            def recorded(before: float, told: GenerationTold = told) -> Guided | None:
                if with_models and self._modelled(before) != told.guided:
                    why = "the model of all scores does not advise what the record says it advised"
                    raise ReplayError(told.generation, why)
                return told.guided

            if self._tell(generation, recorded) != told:
                why = "the search does not stand where the record says it stood"
                raise ReplayError(told.generation, why)

    def _check_points(self, generation: Batch) -> None:
        """Raises ReplayError unless these are the points that the generation was asked at."""
        pairs = enumerate(zip_longest(generation.points, self.ask()))
        other = next((place for place, (recorded, asked) in pairs if recorded != asked), None)
        if other is not None:
            why = f"candidate {other} is asked at another point than the recorded one"
            raise ReplayError(generation.number, why)


_Adviser = Callable[[float], Guided | None]
"""What is advised after a generation that was told, whose step was so long."""


def landscape_of_noise(terms: SearchTerms, population: int, generations: int) -> Landscape:
    """The shape that such a search would have after so many generations if no knob did anything.

    The fitness is drawn from a stream of the terms' seed that no direction comes from. No model is
    made of it: it would move the mean and hold the step, and leave the shape as it is.
    """
    search = Search(terms, population)
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([terms.seed, 0, 1])))
    for number in range(generations):
        points = search.ask()
        drawn = tuple(float(score) for score in rng.standard_normal(len(points)))
        tried = tuple(Configuration(name="", point=point) for point in points)
        seeds = ((),) * len(tried)
        search._learn(_Noise(None, number, tried, seeds, drawn=drawn), lambda _: None)
    return search.landscape()


@lru_cache(maxsize=8)
def landscape_by_chance(
    terms: SearchTerms, population: int, generations: int
) -> tuple[float, float]:
    """What one search in twenty of that size exceeds where no knob does anything.

    That is its strongest correlation, whatever its sign, and its covariance's condition number.
    """
    seeds = range(1, 20)  # one search in twenty exceeds all of 19 by chance
    seen = [
        landscape_of_noise(terms.model_copy(update={"seed": seed}), population, generations)
        for seed in seeds
    ]
    rest = (np.array(one.correlations) - np.eye(len(terms.start)) for one in seen)
    strongest = max(float(np.abs(matrix).max()) for matrix in rest)
    return strongest, max(one.condition for one in seen)


@dataclass(slots=True, kw_only=True)
class _Noise(Batch):
    """Scores that were drawn, not evaluated."""

    drawn: tuple[float, ...]

    def scores(self) -> list[float | None]:
        return list(self.drawn)
