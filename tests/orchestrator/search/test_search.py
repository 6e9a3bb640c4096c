"""The search is a function of its terms and of what it was told."""

from collections.abc import Callable
from dataclasses import replace
from math import nextafter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from budgets.plan import SearchTerms
from budgets.state import Batch
from orchestrator.records.runs import ReplayError
from orchestrator.search import Search, landscape_of_noise
from orchestrator.search.landscape import rows

if TYPE_CHECKING:
    from tests.orchestrator.search.conftest import Evaluated, Scored

TERMS = SearchTerms(seed=7, sigma0=0.2, start=(0.4,) * 10)
SHAPE = np.diag(np.linspace(0.2, 1.8, 10)) + 0.1 - 0.1 * np.eye(10)
"""Covariances of 0.1 and a mean diagonal of 1."""
SHAPED = TERMS.model_copy(update={"shape": rows(SHAPE)})


Run = Callable[..., list[Batch]]


@pytest.fixture
def run(evaluated: "Evaluated") -> Run:
    """So many generations of a search one of whose candidates always fails, as they were told."""

    def told(generations: int, population: int = 8, terms: SearchTerms = TERMS) -> list[Batch]:
        search = Search(terms, population)
        done = []
        for _ in range(generations):
            generation = evaluated(search, frozenset({1}))
            done.append(replace(generation, told=search.tell(generation)))
        return done

    return told


def test_the_same_terms_give_the_same_search_bit_for_bit(run: Run) -> None:
    assert run(8) == run(8)


def test_another_seed_gives_another_search() -> None:
    other = Search(TERMS.model_copy(update={"seed": 8}), 8)
    assert other.ask() != Search(TERMS, 8).ask()


def test_foreign_use_of_the_global_generator_changes_nothing(evaluated: "Evaluated") -> None:
    search = Search(TERMS, 8)
    np.random.seed(1)
    first = evaluated(search)
    search.tell(first)
    np.random.random(100)
    undisturbed = Search(TERMS, 8)
    undisturbed.tell(evaluated(undisturbed))
    assert search.ask() == undisturbed.ask()


def test_making_a_search_leaves_the_global_generator_alone() -> None:
    np.random.seed(3)
    expected = np.random.random(4)
    np.random.seed(3)
    Search(TERMS, 8).ask()
    assert np.array_equal(np.random.random(4), expected)


def test_a_replay_arrives_where_the_search_was(run: Run, evaluated: "Evaluated") -> None:
    done = run(6)
    original = Search(TERMS, 8)
    for generation in done:
        original.tell(generation)
    replayed = Search(TERMS, 8)
    replayed.replay(done)
    assert replayed.ask() == original.ask()
    assert replayed.tell(evaluated(replayed)) == original.tell(evaluated(original))


def test_a_replay_keeps_a_generation_that_was_asked_but_not_told(evaluated: "Evaluated") -> None:
    search = Search(TERMS, 8)
    asked = evaluated(search)
    search.replay([asked])
    assert search.generation == 0
    assert search.ask() == asked.points


def test_a_replay_names_the_generation_whose_points_differ(run: Run) -> None:
    done = run(4)
    moved = tuple(
        one.model_copy(update={"point": (one.point[0] + 1e-6, *one.point[1:])})
        for one in done[2].configurations
    )
    done[2].configurations = moved
    with pytest.raises(ReplayError, match="generation 2: candidate"):
        Search(TERMS, 8).replay(done)


def test_a_replay_names_the_generation_whose_state_differs_in_its_last_bits(run: Run) -> None:
    done = run(4)
    told = done[3].told
    assert told is not None
    done[3] = replace(done[3], told=replace(told, sigma=nextafter(told.sigma, 1.0)))
    with pytest.raises(ReplayError, match="generation 3: the search does not stand"):
        Search(TERMS, 8).replay(done)


def test_the_favourite_is_a_point_of_the_cube_and_moves_towards_the_optimum(run: Run) -> None:
    told = run(30)[-1].told
    assert told is not None
    assert all(0.0 <= u <= 1.0 for u in told.mean)
    assert sum((u - 0.7) ** 2 for u in told.mean) < 0.1 * 10 * 0.3**2


def test_a_failed_candidate_is_told_as_worse_than_every_healthy_one(evaluated: "Evaluated") -> None:
    search = Search(TERMS, 8)
    generation = evaluated(search, frozenset({0, 3}))
    fitness = generation.fitness()
    assert all(np.isfinite(fitness))
    assert min(fitness[0], fitness[3]) > max(f for i, f in enumerate(fitness) if i not in (0, 3))
    assert fitness[0] < fitness[3]


def test_nothing_is_written_to_the_working_directory_or_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cma_signals.in").write_text("{'timeout': 0}")
    run(3)
    assert [p.name for p in tmp_path.iterdir()] == ["cma_signals.in"]
    assert capfd.readouterr() == ("", "")


# Distances


def mahalanobis(search: Search, sigma: float, covariance: npt.NDArray[np.float64]) -> list[float]:
    """From the start, by the definition; right where the bounds bend nothing."""
    steps = np.array(search.ask()) - TERMS.start
    return [float(np.sqrt(y @ np.linalg.solve(covariance, y))) / sigma for y in steps]


@pytest.mark.parametrize("shape", [None, rows(SHAPE)])
def test_a_distance_is_that_of_the_candidate_in_the_distribution_it_was_drawn_from(
    shape: tuple[tuple[float, ...], ...] | None,
) -> None:
    search = Search(TERMS.model_copy(update={"sigma0": 0.01, "shape": shape}), 9)
    covariance = np.eye(10) if shape is None else np.array(shape)
    expected = mahalanobis(search, 0.01, covariance)
    assert search.distances() == pytest.approx(expected, rel=1e-3)


def test_distances_are_those_pycma_finds_for_the_genotypes_of_every_generation(
    evaluated: "Evaluated",
) -> None:
    search = Search(SHAPED, 12)
    for _ in range(12):
        search.ask()
        es = search._strategy._es
        steps = [es.sent_solutions[x]["geno"] - es.mean for x in search._strategy.ask()]
        assert search.distances() == pytest.approx([es.mahalanobis_norm(s) for s in steps])
        assert len(search.distances()) == 12
        search.tell(evaluated(search))


def test_distances_are_sqrt_d_on_average() -> None:
    drawn: list[float] = []
    for seed in range(1, 101):
        drawn += Search(TERMS.model_copy(update={"seed": seed}), 8).distances()
    assert np.mean(drawn) == pytest.approx(np.sqrt(10), rel=0.05)


def test_looking_at_a_search_does_not_change_it(evaluated: "Evaluated") -> None:
    watched, left_alone = Search(TERMS, 8), Search(TERMS, 8)
    for _ in range(8):
        before = (watched.distances(), watched.landscape())
        generation = evaluated(watched)
        assert (watched.distances(), watched.landscape()) == before
        assert watched.tell(generation) == left_alone.tell(evaluated(left_alone))


# Warm starts


def test_a_search_with_a_shape_is_the_same_bit_for_bit_and_no_other(run: Run) -> None:
    assert run(8, terms=SHAPED) == run(8, terms=SHAPED)
    assert run(1, terms=SHAPED) != run(1)


def test_a_search_with_a_shape_replays(run: Run) -> None:
    done = run(6, terms=SHAPED)
    replayed = Search(SHAPED, 8)
    replayed.replay(done)
    assert replayed.generation == 6


def test_the_first_generation_is_drawn_from_the_shape() -> None:
    steps = []
    for seed in range(1, 41):
        terms = SHAPED.model_copy(update={"seed": seed, "sigma0": 0.01})
        steps += list((np.array(Search(terms, 100).ask()) - TERMS.start)[::2] / 0.01)
    found = np.cov(np.array(steps).T)
    assert found == pytest.approx(SHAPE, abs=0.15)


def test_a_search_begins_at_the_landscape_it_was_given() -> None:
    landscape = Search(SHAPED, 8).landscape()
    assert np.array(landscape.shape) == pytest.approx(SHAPE, rel=1e-4)
    assert landscape.scale == pytest.approx(0.2, rel=1e-4)
    assert landscape.favourite == TERMS.start


def test_the_landscape_of_one_search_is_the_shape_of_another(run: Run) -> None:
    learned = Search(TERMS, 8)
    learned.replay(run(10))
    first = learned.landscape()
    terms = {"sigma0": min(first.scale, 0.3), "start": first.favourite, "shape": first.shape}
    second = Search(SearchTerms(seed=9, **terms), 8).landscape()
    assert second.correlations[0] == pytest.approx(first.correlations[0], rel=1e-4)
    assert second.deviations == pytest.approx(first.deviations, rel=1e-4)
    assert second.condition == pytest.approx(first.condition, rel=1e-3)


def test_a_warm_start_on_the_functions_own_shape_is_faster_than_none(scored: "Scored") -> None:
    weights = 100.0 ** (np.arange(10) / 9)
    inverse = np.diag(1 / weights / np.mean(1 / weights))

    def reached(**terms: Any) -> float:
        start = {"sigma0": 0.1, "start": (0.5,) * 10}
        search = Search(TERMS.model_copy(update={**start, **terms}), 8)
        for _ in range(40):
            scores = [float(weights @ (np.array(p) - 0.55) ** 2) for p in search.ask()]
            told = search.tell(scored(search.generation, search.ask(), scores))
        return float(weights @ (np.array(told.mean) - 0.55) ** 2)

    assert reached(shape=rows(inverse)) < 0.5 * reached()


@pytest.mark.parametrize("lowest", [-0.1, 0.0, 1e-12])
def test_a_shape_that_is_not_positive_definite_is_refused(lowest: float) -> None:
    shape = np.diag([lowest, *[(10 - lowest) / 9] * 9])
    with pytest.raises(ValueError, match="shape: expected a positive definite matrix"):
        Search(TERMS.model_copy(update={"shape": rows(shape)}), 8)


# Pure noise


def test_the_landscape_of_noise_is_a_search_whose_knobs_do_nothing() -> None:
    found = [landscape_of_noise(TERMS.model_copy(update={"seed": s}), 8, 6) for s in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert landscape_of_noise(TERMS, 8, 0) == Search(TERMS, 8).landscape()
    assert 0.01 < max(abs(r) for r in found[0].correlations[0][1:]) < 0.9


@pytest.mark.parametrize("method", ["guided", "mirrored-orthogonal", "plain"])
@pytest.mark.parametrize("population", [4, 5, 9])
@pytest.mark.parametrize("dimension", [1, 2])
def test_small_spaces_and_populations_are_searched_too(
    dimension: int, population: int, method: Any, evaluated: "Evaluated"
) -> None:
    terms = SearchTerms(method=method, seed=1, sigma0=0.15, start=(0.4,) * dimension)
    search, done = Search(terms, population), []
    for _ in range(20):
        generation = evaluated(search)
        done.append(replace(generation, told=search.tell(generation)))
    assert min(min(each.fitness()) for each in done) < 1e-3
    Search(terms, population).replay(done, with_models=True)
