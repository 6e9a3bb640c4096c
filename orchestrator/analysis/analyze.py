"""Which knobs matter around a search's recommendation, as far as its ledger tells."""

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from budgets.state import RunState
from budgets.terms import SearchTerms
from budgets.verdict.finalists import recommendation
from objectives.space import SearchSpace
from orchestrator.analysis.sensitivity import Estimate, estimate_of
from orchestrator.checks.space import Around
from orchestrator.records.planned import space_of
from orchestrator.records.recommended import best_point
from orchestrator.search import Search, landscape_of_noise
from orchestrator.search.landscape import Landscape, Point

LEAST_STEP = 0.05
"""Of a knob's range: how far a check around the recommendation moves a knob at least."""

REPEATS = 19
"""Searches on pure noise: one search in twenty shows more than all of them by chance."""


@dataclass(frozen=True)
class ByChance:
    """What a search of the same size shows on pure noise; one in twenty shows more."""

    correlation: float  # the strongest, whatever its sign
    condition: float  # of the covariance matrix


@dataclass(frozen=True)
class Analysis:
    """What the finished generations of a search say of its knobs; nothing was paid for it."""

    run_id: str
    head: str  # of the ledger
    generations: int
    evaluations: int
    space: SearchSpace
    recommendation: Point  # or what the search stood for at last
    recommended: bool  # which of the two
    landscape: Landscape
    first: Landscape  # where the search began
    by_chance: ByChance
    estimate: Estimate | None  # None: the evaluations are too few

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(knob.name for knob in self.space.knobs)

    def pairs(self) -> list[tuple[float, str, str]]:
        """The correlation of every two knobs, the strongest first."""
        found = [
            (self.landscape.correlations[i][j], name, self.names[j])
            for i, name in enumerate(self.names)
            for j in range(i + 1, len(self.names))
        ]
        return sorted(found, key=lambda pair: -abs(pair[0]))

    def around(self) -> Around:
        """How a check looks around the recommendation: one standard deviation either way."""
        deviations = self.landscape.deviations
        return Around(
            run_id=self.run_id,
            head=self.head,
            centre=self.recommendation,
            steps=tuple(round(max(sd, LEAST_STEP), 6) for sd in deviations),  # on any processor
        )

    def as_dict(self) -> dict[str, Any]:
        landscape = self.landscape
        return {
            "run_id": self.run_id,
            "head": self.head,
            "generations": self.generations,
            "evaluations": self.evaluations,
            "names": self.names,
            "recommendation": {
                "point": self.recommendation,
                "knobs": self.space.decode(self.recommendation),
                "recommended": self.recommended,
            },
            "landscape": {
                **asdict(landscape),
                "shape": landscape.shape,
                "scale": landscape.scale,
                "first_deviations": self.first.deviations,
            },
            "by_chance": asdict(self.by_chance),
            "estimate": None if self.estimate is None else asdict(self.estimate),
        }


def analyze(state: RunState, *, accept_drift: bool = False) -> Analysis:
    """The analysis of a search, replayed from its ledger.

    Raises ValueError on a run that searched nothing, or of which no generation is finished;
    ReplayError where the replay diverges.
    """
    plan, point = state.plan, best_point(state)
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase}: expected a search's run")
    if point is None:
        raise ValueError(f"{plan.run_id} has finished no generation yet: there is nothing to say")
    first, *_, last = landscapes(state, accept_drift=accept_drift)
    return Analysis(
        run_id=plan.run_id,
        head=state.head,
        generations=state.finished,
        evaluations=state.accounts.evaluations,
        space=space_of(plan),
        recommendation=point,
        recommended=recommendation(state) is not None,
        landscape=last,
        first=first,
        by_chance=by_chance(plan.search, plan.resolved.population, state.finished),
        estimate=estimate_of(state),
    )


def landscapes(state: RunState, *, accept_drift: bool = False) -> list[Landscape]:
    """The search's distribution as it began, and after each generation that was told.

    Raises ReplayError where the replay diverges.
    """
    plan = state.plan
    assert plan.search is not None, "only a search is replayed"
    search = Search(plan.search, plan.resolved.population)
    seen = [search.landscape()]
    for generation in state.generations:
        search.replay([generation], accept_drift=accept_drift)
        if generation.told is not None:
            seen.append(search.landscape())
    return seen


@lru_cache(maxsize=8)
def by_chance(terms: SearchTerms, population: int, generations: int) -> ByChance:
    """What searches of that size show of knobs that do nothing."""
    seeds = range(1, REPEATS + 1)
    with threadpool_limits(1):  # in 40 knobs threads waiting for each other take six times as long
        seen = [
            landscape_of_noise(terms.model_copy(update={"seed": seed}), population, generations)
            for seed in seeds
        ]
    apart = [np.array(one.correlations) - np.eye(len(terms.start)) for one in seen]
    return ByChance(
        correlation=max(float(np.abs(matrix).max()) for matrix in apart),
        condition=max(one.condition for one in seen),
    )
