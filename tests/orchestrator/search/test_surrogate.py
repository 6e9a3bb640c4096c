"""A Gaussian process of noisy scores knows where the function is lowest."""

from collections.abc import Callable

import numpy as np
import pytest

from orchestrator.search.surrogate import Array, fit, minimum


def bowl(points: Array) -> Array:
    """Lowest at 0.6 in every coordinate, ten times steeper along the last than the first."""
    scales = np.linspace(1.0, 10.0, points.shape[1])
    lows: Array = (np.square(points - 0.6) * scales).sum(axis=1)
    return lows


def drawn(count: int, dimension: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((count, dimension))


def each_alone(count: int) -> Array:
    return np.arange(count, dtype=np.float64)


def lowest(points: Array, scores: Array, generations: Array) -> Array:
    """Where the surrogate is lowest, within 2 of the origin."""
    surrogate = fit(points, scores, generations)
    starts = np.concatenate([np.zeros((1, points.shape[1])), points[:5]])
    return minimum(surrogate, starts, lambda x: np.clip(x, -2.0, 2.0), 0.3)


def test_without_noise_it_finds_the_lowest_point() -> None:
    points = drawn(60, 4)
    assert lowest(points, bowl(points), each_alone(60)) == pytest.approx([0.6] * 4, abs=0.02)


def test_with_noise_it_is_nearer_to_the_lowest_point_than_the_best_of_the_scores() -> None:
    found, best = [], []
    for seed in range(10):
        points = drawn(80, 4, seed)
        scores = bowl(points) + 3.0 * np.random.default_rng([seed, 1]).standard_normal(80)
        found.append(float(bowl(lowest(points, scores, each_alone(80))[None])[0]))
        best.append(float(bowl(points[[scores.argmin()]])[0]))
    assert np.median(found) < 0.3 * np.median(best)


def test_it_tells_noise_from_what_the_function_does() -> None:
    points = drawn(150, 3)
    white = np.random.default_rng(2).standard_normal(150)
    found = [fit(points, bowl(points) + n * white, each_alone(150)).noise for n in (0, 0.1, 1.0)]
    assert found[0] < 0.01
    assert found[1] == pytest.approx(0.1, rel=0.5)
    assert 4 * found[1] < found[2] < 1.5  # the worse half of the scores is squashed


def test_noise_that_a_generation_shares_does_not_move_the_lowest_point() -> None:
    generations = np.repeat(np.arange(10.0), 8)
    rng = np.random.default_rng(4)
    away = []
    for shared in (0.0, 3.0):
        points = drawn(80, 4) + np.repeat(rng.standard_normal((10, 4)), 8, axis=0) * 0.3
        offsets = np.repeat(shared * rng.standard_normal(10), 8)
        noise = 0.2 * rng.standard_normal(80)
        away.append(
            float(np.linalg.norm(lowest(points, bowl(points) + offsets + noise, generations) - 0.6))
        )
    assert max(away) < 0.25


def test_the_gradient_is_that_of_the_mean() -> None:
    points = drawn(40, 3)
    noise = 0.3 * np.random.default_rng(5).standard_normal(40)
    surrogate = fit(points, bowl(points) + noise, each_alone(40))
    where, step = drawn(6, 3, seed=9), 1e-4
    _, slopes = surrogate(where)
    for axis in range(3):
        moved = step * np.eye(3)[axis]
        rise = (surrogate(where + moved)[0] - surrogate(where - moved)[0]) / (2 * step)
        assert slopes[:, axis] == pytest.approx(rise, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("change", [lambda s: s + 100.0, lambda s: 1e-3 * s, lambda s: 1e6 * s])
def test_the_unit_and_the_zero_of_the_score_do_not_matter(change: Callable[[Array], Array]) -> None:
    points = drawn(50, 3)
    scores = bowl(points) + 0.3 * np.random.default_rng(3).standard_normal(50)
    here = lowest(points, scores, each_alone(50))
    assert lowest(points, change(scores), each_alone(50)) == pytest.approx(here, abs=1e-3)


def test_one_terrible_score_does_not_hide_the_others() -> None:
    points = drawn(60, 4)
    scores = bowl(points)
    scores[scores.argmax()] = 1e4
    assert bowl(lowest(points, scores, each_alone(60))[None])[0] < 0.3 * scores.min()


@pytest.mark.parametrize("dimension", [1, 2])
def test_few_dimensions_do(dimension: int) -> None:
    points = drawn(12, dimension)
    found = lowest(points, bowl(points), each_alone(12))
    assert found == pytest.approx([0.6] * dimension, abs=0.05)


def test_where_all_scores_are_equal_it_is_flat() -> None:
    points = drawn(20, 3)
    values, slopes = fit(points, np.full(20, 3.0), each_alone(20))(drawn(5, 3, seed=2))
    assert not values.any()
    assert not slopes.any()


def test_the_descent_stays_where_it_is_allowed_and_prefers_the_earlier_start() -> None:
    def flat(points: Array) -> tuple[Array, Array]:
        return np.zeros(len(points)), np.zeros_like(points)

    starts = np.array([[0.3, 0.3], [0.1, 0.1]])
    assert minimum(flat, starts, lambda x: x, 0.3).tolist() == [0.3, 0.3]

    def slope(points: Array) -> tuple[Array, Array]:
        return points.sum(axis=1), np.ones_like(points)

    assert minimum(slope, starts, lambda x: np.clip(x, 0.0, 1.0), 0.3).tolist() == [0.0, 0.0]
