"""A search behind ask, tell and replay.

It is a function of its plan and the scores that it was told: replaying those gives the same search
bit for bit, and nothing is pickled.
"""

from collections.abc import Iterable
from itertools import zip_longest

from budgets.events import GenerationTold, Guided
from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.records.runs import ReplayError
from orchestrator.search.directions import Chained, Independent
from orchestrator.search.guide import guided
from orchestrator.search.strategy import Landscape, Point, Strategy


class Search:
    """A search in [0, 1]^d: `ask`, then `tell` once, generation by generation."""

    def __init__(self, plan: SearchPlan, population: int) -> None:
        """Raises ValueError if the plan has a shape that is not positive definite."""
        self._plan = plan
        self._population = population
        self._seen: list[Batch] = []  # generations that were told
        directions = (Chained if plan.method == "guided" else Independent)(plan.seed)
        self._strategy = Strategy(plan.start, plan.sigma0, population, directions, plan.shape)
        if plan.known:
            self._strategy.propose(plan.known)

    @property
    def generation(self) -> int:
        """The number of the generation that `ask` returns."""
        return len(self._seen)

    def ask(self) -> tuple[Point, ...]:
        """Return the generation's points of the unit cube; asking twice gives the same points."""
        return tuple(tuple(float(u) for u in x) for x in self._strategy.ask())

    def landscape(self) -> Landscape:
        """Return the search's current distribution."""
        return self._strategy.landscape()

    def tell(self, generation: Batch) -> GenerationTold:
        """Learn from a closed generation, once; return where the search stands afterwards."""
        self._check_points(generation)
        return self._follow(generation, self._modelled(self._learn(generation)))

    def replay(self, generations: Iterable[Batch], *, with_models: bool = False) -> None:
        """Bring the search to where the recorded `generations` left it, checking every step.

        Points and state are computed again and compared with the record. The advice of models is
        taken from the record, or computed and compared too with `with_models`. Raises ReplayError
        at the first difference, however small.
        """
        for generation in generations:
            self._check_points(generation)
            if (told := generation.told) is None:
                continue
            step = self._learn(generation)
            if with_models and self._modelled(step) != told.guided:
                why = "the model of all scores does not advise what the record says it advised"
                raise ReplayError(told.generation, why)
            if self._follow(generation, told.guided) != told:
                why = "the search does not stand where the record says it stood"
                raise ReplayError(told.generation, why)

    def _learn(self, generation: Batch) -> float:
        """Tell the strategy; return the step size that the generation was drawn with."""
        step = self._strategy.sigma
        self._strategy.tell(generation.fitness())
        self._seen.append(generation)
        return step

    def _modelled(self, step: float) -> Guided | None:
        """Return the advice of a model of all scores; `step` is that of the last generation."""
        if self._plan.method != "guided":
            return None
        return guided(self._seen, self._population, self._strategy, step)

    def _follow(self, generation: Batch, advice: Guided | None) -> GenerationTold:
        """Apply the advice; return where the search stands."""
        strategy = self._strategy
        if advice is not None:
            strategy.move(advice.centre)
            strategy.sigma = advice.sigma or strategy.sigma
        return GenerationTold(
            generation=generation.number,
            digest=strategy.digest(),
            mean=strategy.mean,
            sigma=strategy.sigma,
            axis_ratio=strategy.axis_ratio,
            guided=advice,
        )

    def _check_points(self, generation: Batch) -> None:
        """Raise ReplayError unless the generation has the points that this search asks for."""
        pairs = enumerate(zip_longest(generation.points, self.ask()))
        other = next((place for place, (recorded, asked) in pairs if recorded != asked), None)
        if other is not None:
            why = f"candidate {other} is asked at another point than the recorded one"
            raise ReplayError(generation.number, why)
