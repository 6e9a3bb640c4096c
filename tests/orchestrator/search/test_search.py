"""A search is a function of its plan and its scores."""

from collections.abc import Callable
from dataclasses import replace
from math import nextafter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.records.runs import ReplayError
from orchestrator.search import Search
from orchestrator.search.strategy import landscape, rows

if TYPE_CHECKING:
    from tests.orchestrator.search.conftest import Evaluated, Scored

PLAN = SearchPlan(seed=7, sigma0=0.2, start=(0.4,) * 10)


Run = Callable[..., list[Batch]]


@pytest.fixture
def run(evaluated: "Evaluated") -> Run:
    """So many generations of a search one of whose candidates always fails, as they were told."""

    def told(generations: int, population: int = 8, plan: SearchPlan = PLAN) -> list[Batch]:
        search = Search(plan, population)
        done = []
        for _ in range(generations):
            generation = evaluated(search, frozenset({1}))
            done.append(replace(generation, told=search.tell(generation)))
        return done

    return told


def test_foreign_use_of_the_global_generator_changes_nothing(evaluated: "Evaluated") -> None:
    search = Search(PLAN, 8)
    np.random.seed(1)
    first = evaluated(search)
    search.tell(first)
    np.random.random(100)
    undisturbed = Search(PLAN, 8)
    undisturbed.tell(evaluated(undisturbed))
    assert search.ask() == undisturbed.ask()


def test_a_replay_arrives_where_the_search_was(run: Run, evaluated: "Evaluated") -> None:
    done = run(6)
    original = Search(PLAN, 8)
    for generation in done:
        original.tell(generation)
    replayed = Search(PLAN, 8)
    replayed.replay(done)
    assert replayed.ask() == original.ask()
    assert replayed.tell(evaluated(replayed)) == original.tell(evaluated(original))


def test_a_replay_names_the_generation_whose_points_differ(run: Run) -> None:
    done = run(4)
    moved = tuple(
        one.model_copy(update={"point": (one.point[0] + 1e-6, *one.point[1:])})
        for one in done[2].configurations
    )
    done[2].configurations = moved
    with pytest.raises(ReplayError, match="generation 2: candidate"):
        Search(PLAN, 8).replay(done)


def test_a_replay_names_the_generation_whose_state_differs_in_its_last_bits(run: Run) -> None:
    done = run(4)
    told = done[3].told
    assert told is not None
    done[3] = replace(done[3], told=replace(told, sigma=nextafter(told.sigma, 1.0)))
    with pytest.raises(ReplayError, match="generation 3: the search does not stand"):
        Search(PLAN, 8).replay(done)


def test_nothing_is_written_to_the_working_directory_or_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cma_signals.in").write_text("{'timeout': 0}")
    run(3)
    assert [p.name for p in tmp_path.iterdir()] == ["cma_signals.in"]
    assert capfd.readouterr() == ("", "")


# Warm starts


def test_a_warm_start_on_the_functions_own_shape_is_faster_than_none(scored: "Scored") -> None:
    weights = 100.0 ** (np.arange(10) / 9)
    inverse = np.diag(1 / weights / np.mean(1 / weights))

    def reached(**plan: Any) -> float:
        start = {"sigma0": 0.1, "start": (0.5,) * 10}
        search = Search(PLAN.model_copy(update={"method": "plain", **start, **plan}), 8)
        for _ in range(40):
            scores = [float(weights @ (np.array(p) - 0.55) ** 2) for p in search.ask()]
            told = search.tell(scored(search.generation, search.ask(), scores))
        return float(weights @ (np.array(told.mean) - 0.55) ** 2)

    assert reached(shape=rows(inverse)) < 0.5 * reached()


@pytest.mark.parametrize("lowest", [-0.1, 0.0, 1e-12])
def test_a_shape_that_is_not_positive_definite_is_refused(lowest: float) -> None:
    shape = np.diag([lowest, *[(10 - lowest) / 9] * 9])
    with pytest.raises(ValueError, match="shape: expected a positive definite matrix"):
        Search(PLAN.model_copy(update={"shape": rows(shape)}), 8)


@pytest.mark.parametrize("method", ["guided", "plain"])
@pytest.mark.parametrize("population", [4, 9])
@pytest.mark.parametrize("dimension", [1, 2])
def test_small_spaces_and_populations_are_searched_too(
    dimension: int, population: int, method: Any, evaluated: "Evaluated"
) -> None:
    plan = SearchPlan(method=method, seed=1, sigma0=0.15, start=(0.4,) * dimension)
    search, done = Search(plan, population), []
    for _ in range(20):
        generation = evaluated(search)
        done.append(replace(generation, told=search.tell(generation)))
    assert min(min(each.fitness()) for each in done) < 1e-3
    Search(plan, population).replay(done, with_models=True)


# The advice of a model


@pytest.mark.parametrize("change", [{"sigma": 0.19}, {"sigma": None}, {"centre": (0.9, 0.1, 0.9)}])
def test_forged_advice_is_found_though_the_search_went_on_with_it(
    change: dict[str, object], evaluated: "Evaluated"
) -> None:
    """Of a search in noise, whose step is held."""
    plan = SearchPlan(method="guided", seed=7, sigma0=0.15, start=(0.4,) * 3)
    rng = np.random.default_rng(5)
    search, done = Search(plan, 6), []
    for _ in range(8):
        generation = evaluated(search, score=lambda p: sum(p) + float(rng.standard_normal()))
        done.append(replace(generation, told=search.tell(generation)))
    held = [g for g in done if g.told and g.told.guided and g.told.guided.sigma is not None]
    assert held[0].told is not None
    assert held[0].told.guided is not None
    number = held[0].number
    advice = held[0].told.guided.model_copy(update=change)
    search = Search(plan, 6)
    search.replay(done[:number])
    search.ask()
    search._learn(held[0])
    forged = [*done[:number], replace(held[0], told=search._follow(held[0], advice))]
    Search(plan, 6).replay(forged)  # resuming follows the record
    with pytest.raises(ReplayError, match=f"generation {number}"):
        Search(plan, 6).replay(forged, with_models=True)
    Search(plan, 6).replay(done, with_models=True)


# The distribution, for people and for a phase 2


COVARIANCE = np.array([[0.04, 0.01], [0.01, 0.01]])


def test_a_landscape_gives_the_covariance_back() -> None:
    found = landscape((0.5, 0.5), 0.2, COVARIANCE)
    assert found.deviations == pytest.approx((0.2, 0.1))
    assert found.correlations[0][1] == found.correlations[1][0] == pytest.approx(0.5)
    assert found.correlations[0][0] == found.correlations[1][1] == 1.0
    assert found.scale**2 * np.array(found.shape) == pytest.approx(COVARIANCE)


def test_a_shape_has_a_mean_diagonal_of_1_and_is_symmetric_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((7, 9))
    shape = np.array(landscape((0.5,) * 7, 1.0, root @ root.T).shape)
    assert np.mean(np.diag(shape)) == pytest.approx(1.0)
    assert np.array_equal(shape, shape.T)
