"""A search is a function of its plan and its scores."""

from dataclasses import replace
from typing import Any

import pytest

from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.search import Search
from tests.imported import imported_by
from tests.orchestrator.search.conftest import evaluated

PLAN = SearchPlan(seed=7, sigma0=0.2, start=(0.4,) * 10)


def test_it_is_imported_without_what_pycma_plots_and_compares_with() -> None:
    assert not imported_by("import orchestrator.search") & {"matplotlib", "scipy.stats"}
    assert "matplotlib" in imported_by("import orchestrator.search, matplotlib")


def test_a_replay_arrives_where_the_search_was(monkeypatch: pytest.MonkeyPatch) -> None:
    original, done = Search(PLAN, 8), list[Batch]()
    for _ in range(6):
        generation = evaluated(original, frozenset({1}))  # one candidate always fails
        done.append(replace(generation, told=original.tell(generation)))
    replayed = Search(PLAN, 8)
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.search.guided", None)  # its advice is read from the record
        replayed.replay(done)
    assert replayed.ask() == original.ask()
    assert replayed.tell(evaluated(replayed)) == original.tell(evaluated(original))


@pytest.mark.parametrize("method", ["guided", "plain"])
@pytest.mark.parametrize(("dimension", "population", "generations"), [(1, 9, 12), (2, 4, 20)])
def test_small_spaces_and_populations_are_searched_too(
    dimension: int, population: int, generations: int, method: Any
) -> None:
    plan = SearchPlan(method=method, seed=1, sigma0=0.15, start=(0.4,) * dimension)
    search, done = Search(plan, population), []
    for _ in range(generations):
        generation = evaluated(search)
        done.append(replace(generation, told=search.tell(generation)))
    assert min(min(each.fitness()) for each in done) < 1e-3
    Search(plan, population).replay(done, with_models=True)
