"""The search is a function of its terms and of what it was told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.events import Reserved, Settled, Status
from budgets.state import Generation, Try
from budgets.terms import SearchTerms
from orchestrator.search import MirroredOrthogonal, Search
from orchestrator.walk import ReplayError

TERMS = SearchTerms(seed=7, sigma0=0.2, start=(0.4,) * 10)


def evaluated(search: Search, failing: frozenset[int] = frozenset()) -> Generation:
    """The search's next generation, scored by the distance from 0.7; some candidates fail."""
    number, points = search.generation, search.ask()
    tries: dict[tuple[int, int], tuple[Try, ...]] = {}
    for candidate, point in enumerate(points):
        place: dict[str, Any] = {
            "generation": number,
            "candidate": candidate,
            "seed": 5,
            "attempt": 1,
        }
        failed = candidate in failing
        settled = Settled(
            **place,
            status=Status.ERROR if failed else Status.OK,
            score=None if failed else sum((u - 0.7) ** 2 for u in point),
            charged_ms=1,
            seconds=0.001,
        )
        reserved = Reserved(**place, reserve_ms=1)
        tries[candidate, 5] = (Try(0, reserved, settled),)
    return Generation(number, points, tries, seeds=(5,))


def run(generations: int, population: int = 8) -> list[Generation]:
    search = Search(TERMS, population)
    done = []
    for _ in range(generations):
        generation = evaluated(search, frozenset({1}))
        done.append(replace(generation, told=search.tell(generation)))
    return done


def test_the_same_terms_give_the_same_search_bit_for_bit() -> None:
    assert run(8) == run(8)


def test_another_seed_gives_another_search() -> None:
    other = Search(TERMS.model_copy(update={"seed": 8}), 8)
    assert other.ask() != Search(TERMS, 8).ask()


def test_foreign_use_of_the_global_generator_changes_nothing() -> None:
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


def test_a_replay_arrives_where_the_search_was() -> None:
    done = run(6)
    original = Search(TERMS, 8)
    for generation in done:
        original.tell(generation)
    replayed = Search(TERMS, 8)
    replayed.replay(done)
    assert replayed.ask() == original.ask()
    assert replayed.tell(evaluated(replayed)) == original.tell(evaluated(original))


def test_a_replay_keeps_a_generation_that_was_asked_but_not_told() -> None:
    search = Search(TERMS, 8)
    asked = evaluated(search)
    search.replay([asked])
    assert search.generation == 0
    assert search.ask() == asked.points


def test_a_replay_names_the_generation_whose_points_differ() -> None:
    done = run(4)
    moved = tuple((point[0] + 1e-6, *point[1:]) for point in done[2].points)
    done[2] = replace(done[2], points=moved)
    with pytest.raises(ReplayError, match="generation 2: candidate"):
        Search(TERMS, 8).replay(done)


def test_other_last_bits_of_a_state_are_accepted_only_when_asked_for() -> None:
    done = run(4)
    told = done[3].told
    assert told is not None
    moved = tuple(u * (1 + 1e-12) for u in told.favourite)
    drifted = replace(told, digest="0" * 32, favourite=moved)
    done[3] = replace(done[3], told=drifted)
    with pytest.raises(ReplayError, match="--accept-drift"):
        Search(TERMS, 8).replay(done)
    Search(TERMS, 8).replay(done, accept_drift=True)


def test_another_state_is_never_accepted() -> None:
    done = run(4)
    told = done[3].told
    assert told is not None
    elsewhere = replace(told, digest="0" * 32, sigma=told.sigma * 1.001)
    done[3] = replace(done[3], told=elsewhere)
    with pytest.raises(ReplayError, match="generation 3"):
        Search(TERMS, 8).replay(done, accept_drift=True)


def test_the_favourite_is_a_point_of_the_cube_and_moves_towards_the_optimum() -> None:
    told = run(30)[-1].told
    assert told is not None
    assert all(0.0 <= u <= 1.0 for u in told.favourite)
    assert sum((u - 0.7) ** 2 for u in told.favourite) < 0.1 * 10 * 0.3**2


def test_a_failed_candidate_is_told_as_worse_than_every_healthy_one() -> None:
    search = Search(TERMS, 8)
    generation = evaluated(search, frozenset({0, 3}))
    fitness = generation.fitness()
    assert all(np.isfinite(fitness))
    assert min(fitness[0], fitness[3]) > max(f for i, f in enumerate(fitness) if i not in (0, 3))
    assert fitness[0] < fitness[3]


@given(rows=st.integers(1, 15).map(lambda n: 2 * n), dimension=st.integers(2, 12))
def test_directions_are_mirrored_and_orthogonal(rows: int, dimension: int) -> None:
    z = MirroredOrthogonal(11)(rows, dimension)
    assert z.shape == (rows, dimension)
    assert np.array_equal(z[0::2], -z[1::2])
    block = z[0 : 2 * dimension : 2]
    gram = block @ block.T
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-9)


def test_every_direction_alone_is_standard_normal() -> None:
    randn = MirroredOrthogonal(5)
    draws = []
    for generation in range(2000):
        randn.begin(generation)
        draws.append(randn(8, 10))
    rows = np.concatenate(draws)[::2]
    assert abs(rows.mean()) < 0.02
    assert abs(rows.std() - 1.0) < 0.02
    lengths = (rows**2).sum(axis=1)
    assert abs(lengths.mean() - 10.0) < 0.3  # chi-squared with 10 degrees of freedom
    assert abs(lengths.var() - 20.0) < 2.0


def test_nothing_is_written_to_the_working_directory_or_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cma_signals.in").write_text("{'timeout': 0}")
    run(3)
    assert [p.name for p in tmp_path.iterdir()] == ["cma_signals.in"]
    assert capfd.readouterr() == ("", "")
