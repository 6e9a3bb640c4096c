"""A model moves the mean of the search to where all scores say the function is lowest."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from budgets.events import GenerationTold
from budgets.state import Generation
from budgets.terms import SearchTerms
from orchestrator.landscape import Point
from orchestrator.search import Search
from orchestrator.search.guide import LARGEST_HELD, REACH, guided

if TYPE_CHECKING:
    from tests.orchestrator.search.conftest import Evaluated, Scored

TERMS = SearchTerms(method="guided", seed=7, sigma0=0.15, start=(0.4,) * 4)


def told(
    evaluated: "Evaluated", generations: int, score: Callable[[Point], float], population: int = 8
) -> tuple[Search, list[GenerationTold]]:
    search = Search(TERMS, population)
    return search, [search.tell(evaluated(search, score=score)) for _ in range(generations)]


def bowl(point: Point) -> float:
    return sum((u - 0.6) ** 2 for u in point)


def noise(seed: int) -> Callable[[Point], float]:
    rng = np.random.default_rng(seed)
    return lambda _: float(rng.standard_normal())


def test_there_is_no_model_before_the_scores_are_enough(evaluated: "Evaluated") -> None:
    _, records = told(evaluated, 3, bowl, population=6)  # a model of 4 knobs wants 12 scores
    assert [record.guided is not None for record in records] == [False, True, True]


def test_failures_are_no_scores(evaluated: "Evaluated") -> None:
    search = Search(TERMS, 6)
    records = [search.tell(evaluated(search, frozenset({1, 2}))) for _ in range(4)]
    assert [record.guided is not None for record in records] == [False, False, True, True]


def test_the_mean_goes_where_the_model_puts_it(evaluated: "Evaluated") -> None:
    _, records = told(evaluated, 6, bowl)
    for record in records:
        if record.guided is not None:
            assert record.favourite == pytest.approx(record.guided.centre, abs=1e-8)
    assert bowl(records[-1].favourite) < 1e-4 < bowl(TERMS.start)


def test_it_is_never_moved_further_than_its_reach(evaluated: "Evaluated") -> None:
    search = Search(TERMS, 8)
    for _ in range(6):
        generation = evaluated(search, score=lambda point: -point[0])
        search._strategy.ask()
        before = search._strategy.sigma
        search._strategy.tell(generation.fitness())
        search._seen.append(generation)
        search._generation += 1
        advice = guided(search._seen, 8, search._strategy, before)
        if advice is not None:
            step = np.array(advice.centre) - search._strategy.favourite
            covariance = search._strategy.covariance
            away = np.sqrt(step @ np.linalg.solve(covariance, step) / 4)
            assert away <= 1.05 * REACH  # the cube's walls bend the way there
            assert all(0 <= u <= 1 for u in advice.centre)


def test_noise_holds_the_step_and_a_clear_signal_does_not(evaluated: "Evaluated") -> None:
    _, hidden = told(evaluated, 8, noise(3))
    _, clear = told(evaluated, 8, bowl)
    assert any(r.guided is not None and r.guided.sigma is not None for r in hidden)
    assert all(r.guided is None or r.guided.sigma is None for r in clear)
    assert hidden[-1].sigma > 2 * clear[-1].sigma
    assert all(
        r.guided.sigma <= LARGEST_HELD for r in hidden if r.guided is not None and r.guided.sigma
    )


def test_only_generations_of_the_same_fidelity_are_compared(scored: "Scored") -> None:
    search = Search(TERMS, 8)

    def generation(number: int, *, short: bool) -> Generation:
        points = search.ask()
        changed = {"changed": {"target_flops": 1.0}} if short else {}
        return scored(number, points, [bowl(p) + 5.0 * short for p in points], **changed)

    first = search.tell(generation(0, short=True))
    second = search.tell(generation(1, short=False))
    third = search.tell(generation(2, short=False))
    assert (first.guided, second.guided) == (None, None)  # 8 of each: too few to compare
    assert third.guided is not None


def test_failed_candidates_push_the_mean_away(evaluated: "Evaluated") -> None:
    def walled(point: Point) -> float | None:
        return None if point[0] > 0.55 else bowl(point)

    search = Search(TERMS, 12)
    for _ in range(8):
        points = search.ask()
        failing = frozenset(i for i, point in enumerate(points) if walled(point) is None)
        record = search.tell(evaluated(search, failing, score=bowl))
    assert record.favourite[0] < 0.6
    assert bowl(record.favourite) < 0.02
