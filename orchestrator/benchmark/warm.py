"""What knowing something beforehand is worth: searches that begin so, beside those that do not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from budgets.terms import SearchTerms
from orchestrator.benchmark.budgets import BUDGETS, CHECKPOINTS
from orchestrator.benchmark.contenders.api import Start
from orchestrator.benchmark.contenders.ours import Ours
from orchestrator.benchmark.draws import keyed, seed_of
from orchestrator.benchmark.functions import Array, Setting
from orchestrator.benchmark.own import DISTANCES, OwnProblem, reflected
from orchestrator.benchmark.problem import Point
from orchestrator.benchmark.race import Outcome, Race
from orchestrator.benchmark.suites import Key
from orchestrator.planning.request import SIGMA0
from orchestrator.search import Search
from orchestrator.warm.distribution import within

Relation = Literal["same", "moved", "unrelated"]
Kind = Literal["good", "bad", "random"]

MOVED = 0.3
"""How far the optimum lies from the earlier one, by its distance from the default."""

GOOD = 0.3
"""The regret of a setting that is known to be good."""

RANDOM = 5
"""Settings that somebody thinks are good, and that are any."""

SPENDS = (0.0, *CHECKPOINTS)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to begin: after a run on a related function, or with known settings, or neither."""

    relation: Relation | None = None
    source: str = ""  # the tier of that run
    known: Kind | None = None

    @property
    def name(self) -> str:
        if self.relation is not None:
            function = {"same": "the same", "moved": "a moved", "unrelated": "an unrelated"}
            return f"after tier {self.source} on {function[self.relation]} function"
        words = {None: "cold", "good": "1 good", "bad": "1 bad", "random": f"{RANDOM} random"}
        return words[self.known] + (" known" if self.known else "")


COLD = Arm()
RELATIONS: tuple[Relation, ...] = ("same", "moved", "unrelated")
KINDS: tuple[Kind, ...] = ("good", "bad", "random")
ARMS = (
    COLD,
    *(Arm(relation, tier) for relation in RELATIONS for tier in ("min", "target")),
    *(Arm(known=kind) for kind in KINDS),
)


class Earlier(OwnProblem):
    """What an earlier run was on: the same default, and an optimum that lies elsewhere."""

    def __init__(self, key: Key, relation: Relation) -> None:
        super().__init__(key.function, key.seed, key.level)
        self._key, self._relation = key, relation

    @cached_property
    def setting(self) -> Setting:
        key, relation = self._key, self._relation
        own = OwnProblem(key.function, key.seed, key.level).setting
        rng = keyed("earlier", relation, key.function, key.seed)
        if relation == "same":
            return own
        drawn = rng.standard_normal(own.dimension)
        if relation == "moved":
            away = MOVED * np.linalg.norm(own.optimum - own.default) / np.linalg.norm(drawn)
            return replace(own, optimum=reflected(own.optimum + away * drawn))
        distance = DISTANCES[key.seed % len(DISTANCES)]
        return Setting(own.default, reflected(own.default + distance * drawn), rng)


class Begun(Ours):
    """Ours on terms of any kind."""

    def __init__(self, start: Start, terms: SearchTerms) -> None:
        super().__init__(start, terms.method, terms.sigma0)
        self._search = Search(terms, start.budget.population)
        self._default = terms.start

    def stands(self) -> dict[str, Any]:
        """What of it a warm start takes over (`orchestrator.warm.start`)."""
        seen = self._search.landscape()
        return {"start": self.recommend(), "sigma0": within(seen.scale), "shape": seen.shape}


def cold(problem: OwnProblem, *parts: object) -> SearchTerms:
    seed = seed_of("warm", *parts)
    return SearchTerms(method="guided", seed=seed, sigma0=SIGMA0["guided"], start=problem.default)


def run(arm: Arm, tier: str, key: Key) -> Outcome:
    """Deterministic: one search on the problem, and the one before it where there is one."""
    problem = OwnProblem(key.function, key.seed, key.level)
    budget, terms = BUDGETS[tier], cold(problem, "own", key)
    if arm.relation is not None:
        terms = terms.model_copy(update=after(arm.relation, arm.source, key))
    if arm.known is not None:
        terms = terms.model_copy(update={"known": tuple(known(arm.known, budget.population, key))})
    contender = Begun(Start(problem.default, budget, terms.seed), terms)
    return Race(contender, problem, budget, SPENDS).run()


@lru_cache(maxsize=8)
def after(relation: Relation, tier: str, key: Key) -> dict[str, Any]:
    """Terms of a search that begins where one of that tier on a related function has ended."""
    problem = Earlier(key, relation)
    terms = cold(problem, "earlier", key, relation, tier)
    earlier = Begun(Start(problem.default, BUDGETS[tier], terms.seed), terms)
    Race(earlier, problem, BUDGETS[tier], (1.0,)).run()
    return earlier.stands()


def known(kind: Kind, population: int, key: Key) -> Iterator[Point]:
    """Settings that were told beforehand."""
    problem = OwnProblem(key.function, key.seed, key.level)
    rng = keyed("known", kind, key.function, key.seed)
    if kind == "good":
        yield good(problem, rng)
        return
    for _ in range(1 if kind == "bad" else min(RANDOM, population // 2)):
        yield tuple(rng.uniform(size=len(problem.default)).tolist())


def good(problem: OwnProblem, rng: np.random.Generator) -> Point:
    """As far from the optimum as it may be for its regret, on the way from somewhere."""
    own = problem.setting
    spread = float(np.linalg.norm(own.optimum - own.default)) / np.sqrt(own.dimension)
    away = reflected(own.optimum + spread * rng.standard_normal(own.dimension))

    def at(share: float) -> Point:
        point: Array = own.optimum + share * (away - own.optimum)
        return tuple(point.tolist())

    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if problem.regret(at(middle)) <= GOOD else (low, middle)
    return at(low)
