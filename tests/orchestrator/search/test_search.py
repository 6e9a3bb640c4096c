"""A search is a function of its plan and its scores."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.search import Search
from orchestrator.search.cma_es import rows
from tests.orchestrator.search.conftest import closed, evaluated

PLAN = SearchPlan(seed=7, sigma0=0.2, start=(0.4,) * 10)


def test_a_replay_arrives_where_the_search_was() -> None:
    original, done = Search(PLAN, 8), list[Batch]()
    for _ in range(6):
        generation = evaluated(original, frozenset({1}))  # one candidate always fails
        done.append(replace(generation, told=original.tell(generation)))
    replayed = Search(PLAN, 8)
    replayed.replay(done)
    assert replayed.ask() == original.ask()
    assert replayed.tell(evaluated(replayed)) == original.tell(evaluated(original))


# Warm starts


def test_a_warm_start_on_the_functions_own_shape_is_faster_than_none() -> None:
    weights = 100.0 ** (np.arange(10) / 9)
    inverse = np.diag(1 / weights / np.mean(1 / weights))

    def reached(**plan: Any) -> float:
        start = {"sigma0": 0.1, "start": (0.5,) * 10}
        search = Search(PLAN.model_copy(update={"method": "plain", **start, **plan}), 8)
        for _ in range(40):
            scores = [float(weights @ (np.array(p) - 0.55) ** 2) for p in search.ask()]
            told = search.tell(closed(search.generation, search.ask(), scores))
        return float(weights @ (np.array(told.mean) - 0.55) ** 2)

    assert reached(shape=rows(inverse)) < 0.5 * reached()


@pytest.mark.parametrize("lowest", [-0.1, 0.0, 1e-12])
def test_a_shape_that_is_not_positive_definite_is_refused(lowest: float) -> None:
    shape = np.diag([lowest, *[(10 - lowest) / 9] * 9])
    with pytest.raises(ValueError, match="shape: expected a positive definite matrix"):
        Search(PLAN.model_copy(update={"shape": rows(shape)}), 8)


@pytest.mark.parametrize("method", ["guided", "plain"])
@pytest.mark.parametrize(("dimension", "population"), [(1, 9), (2, 4)])
def test_small_spaces_and_populations_are_searched_too(
    dimension: int, population: int, method: Any
) -> None:
    plan = SearchPlan(method=method, seed=1, sigma0=0.15, start=(0.4,) * dimension)
    search, done = Search(plan, population), []
    for _ in range(20):
        generation = evaluated(search)
        done.append(replace(generation, told=search.tell(generation)))
    assert min(min(each.fitness()) for each in done) < 1e-3
    Search(plan, population).replay(done, with_models=True)
