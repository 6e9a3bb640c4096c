"""A search behind ask, tell and replay.

It is a function of its terms and the scores it was told: replaying those gives the same search, bit
for bit, and no pickle is needed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from budgets.events import GenerationTold, Guided
from budgets.state import Generation, fitness
from budgets.terms import SearchMethod, SearchTerms
from orchestrator.search.directions import Chained, Directions, Independent, MirroredOrthogonal
from orchestrator.search.guide import guided
from orchestrator.search.landscape import Landscape, Point
from orchestrator.search.replay import compare_guided, compare_points, compare_told
from orchestrator.search.strategy import Strategy

CONVERGED = 1e-3
"""Of a knob's range: where no knob would be moved by more, a descent has nothing left to find."""

_DIRECTIONS: dict[SearchMethod, type[Independent | MirroredOrthogonal | Chained]] = {
    "plain": Independent,
    "mirrored-orthogonal": MirroredOrthogonal,
    "guided": Chained,
}


class Search:
    """A search in [0, 1]^d: `ask`, then `tell` once, generation by generation.

    A guided one that has converged begins anew elsewhere, each time with twice the population
    (IPOP-CMA-ES: Auger and Hansen 2005). Every generation asked here has the population of the
    plan: a larger one is asked in as many parts, all on the seeds of the first.
    """

    def __init__(self, terms: SearchTerms, population: int) -> None:
        """Raises ValueError unless the terms' shape, if they have one, is positive definite."""
        self._terms = terms
        self._population = population
        self._generation = 0
        self._descent = 0
        self._told: list[Generation] = []  # parts of the larger generation that is being told
        self._seen: list[Generation] = []  # of this descent, told
        self._strategy = self._first_strategy()

    def _first_strategy(self) -> Strategy:
        terms = self._terms
        strategy = Strategy(
            terms.start, terms.sigma0, self._population, self._directions(), terms.shape
        )
        if terms.known:
            strategy.propose(terms.known)
        return strategy

    def _directions(self) -> Directions:
        return _DIRECTIONS[self._terms.method](self._terms.seed, self._descent)

    @property
    def generation(self) -> int:
        """Number of the generation that is, or will be, asked."""
        return self._generation

    def seeded(self, generation: int) -> int:
        """Number of the generation whose seeds `generation` is evaluated on: its first part's."""
        return generation - len(self._told)

    def ask(self) -> tuple[Point, ...]:
        """The generation's points of the unit cube. Asking twice gives the same points."""
        asked = self._strategy.ask()[self._part]
        return tuple(tuple(float(u) for u in x) for x in asked)

    def distances(self) -> tuple[float, ...]:
        """How far from the mean of its distribution each candidate of `ask` was drawn."""
        return self._strategy.distances()[self._part]

    @property
    def _part(self) -> slice:
        begin = len(self._told) * self._population
        return slice(begin, begin + self._population)

    def landscape(self) -> Landscape:
        """The search's distribution as it stands: what it has learned, and draws from."""
        return self._strategy.landscape()

    def tell(self, generation: Generation) -> GenerationTold:
        """Learn from a closed generation, once; says where the search stands afterwards."""
        compare_points(generation, self.ask())
        return self._tell(generation, self._modelled)

    def _tell(self, generation: Generation, adviser: "_Adviser") -> GenerationTold:
        descent = self._descent
        advice = self._learn(generation, adviser)
        strategy = self._strategy
        told = GenerationTold(
            generation=generation.number,
            digest=strategy.digest(),
            favourite=strategy.favourite,
            sigma=strategy.sigma,
            axis_ratio=strategy.axis_ratio,
            guided=advice,
            descent=descent,
        )
        if advice is not None and max(strategy.landscape().deviations) < CONVERGED:
            self._begin_anew()
        return told

    def _learn(self, generation: Generation, adviser: "_Adviser") -> Guided | None:
        """Tell the strategy, and follow the adviser; not before the last part is there."""
        self._generation += 1
        self._told.append(generation)
        if len(self._told) < 2**self._descent:
            return None
        parts, self._told = self._told, []
        before = self._strategy.sigma
        self._strategy.tell(_fitness(parts))
        if self._terms.method != "guided":
            return None
        self._seen += parts
        advice = adviser(before)
        if advice is not None:
            self._strategy.move(advice.centre)
            self._strategy.sigma = advice.sigma or self._strategy.sigma
        return advice

    def _modelled(self, before: float) -> Guided | None:
        """The advice of a model of this descent, whose last step was `before`."""
        return guided(self._seen, self._population << self._descent, self._strategy, before)

    def _begin_anew(self) -> None:
        self._descent += 1
        self._seen = []
        rng = np.random.default_rng([self._terms.seed, self._descent])
        start = [float(u) for u in rng.random(len(self._terms.start))]
        population = self._population << self._descent
        self._strategy = Strategy(start, self._terms.sigma0, population, self._directions())

    def replay(
        self,
        generations: Iterable[Generation],
        *,
        accept_drift: bool = False,
        with_models: bool = False,
    ) -> None:
        """Bring the search to where the recorded `generations` left it, checking every step.

        What is told is what was re-asked; what a model advised is taken from the record, or made
        again too `with_models`. `accept_drift` lets pass a state that differs only as another
        processor's linear algebra makes it. Raises ReplayError at the first divergence.
        """
        for generation in generations:
            compare_points(generation, self.ask())
            if (told := generation.told) is None:
                continue

            def recorded(before: float, told: GenerationTold = told) -> Guided | None:
                if with_models:
                    again = self._modelled(before)
                    compare_guided(told, again, accept_drift=accept_drift)
                return told.guided

            replayed = self._tell(generation, recorded)
            compare_told(told, replayed, accept_drift=accept_drift)


_Adviser = Callable[[float], Guided | None]
"""What is advised after a generation that was told, whose step was so long."""


def _fitness(parts: Sequence[Generation]) -> list[float]:
    """Of the candidates of all parts."""
    return fitness([score for part in parts for score in part.scores()])


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
        search._learn(_Noise(number, points, seeds=(), drawn=drawn), lambda _: None)
    return search.landscape()


@dataclass(slots=True, kw_only=True)
class _Noise(Generation):
    """Scores that were drawn, not evaluated."""

    drawn: tuple[float, ...]

    def scores(self) -> list[float | None]:
        return list(self.drawn)
