"""A model of scores finds the lowest point of a function and the noise of its scores."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.events import MOST_SCORE
from orchestrator.search import surrogate
from orchestrator.search.surrogate import Surrogate, fit, minimum

Array = npt.NDArray[np.float64]

LOWEST = np.array([0.6, -0.4, 0.2, 0.8])
CURVES = np.array([1.0, 3.0, 0.3, 2.0])


def quadratic(points: Array) -> Array:
    values: Array = (CURVES * (points - LOWEST) ** 2).sum(axis=1)
    return values


class Scores:
    """Points as a search draws them, in generations of 8, and what they scored."""

    def __init__(self, count: int, noise: float = 0.0, seed: int = 1, dimension: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.points = rng.standard_normal((count, dimension))
        self.generations = np.arange(count) // 8
        self.scores = noise * rng.standard_normal(count)
        if dimension == 4:
            self.scores += quadratic(self.points)

    def fit(self) -> Surrogate:
        return fit(self.points, self.scores, self.generations)

    def lowest(self) -> Array:
        return lowest(self.fit())


def near(points: Array) -> Array:
    """In a ball of radius 1.5 around the middle of the points."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    inside: Array = points * np.minimum(1.0, 1.5 / np.maximum(lengths, 1e-300))
    return inside


def lowest(model: Surrogate, allowed: Callable[[Array], Array] = near) -> Array:
    dimension = model.points.shape[1]
    starts = np.concatenate([np.zeros((1, dimension)), model.points[-8:]])
    return minimum(model, starts, allowed)


# What it finds


@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_of_a_function_without_noise_is_found(seed: int) -> None:
    assert Scores(48, seed=seed).lowest() == pytest.approx(LOWEST, abs=0.04)


@pytest.mark.parametrize("seed", range(3))
def test_with_noise_it_is_found_far_better_than_by_the_best_score(seed: int) -> None:
    scores = Scores(160, noise=1.0, seed=seed)
    best = scores.points[scores.scores.argmin()]
    found = quadratic(np.array([scores.lowest(), best]))
    assert found[0] < 0.2
    assert found[0] < 0.5 * found[1]


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_the_noise_it_tells_is_that_of_an_evaluation(noise: float) -> None:
    model = Scores(160, noise).fit()
    assert model.noise * model.scale == pytest.approx(noise, rel=0.25)


def test_what_a_generations_seeds_add_to_all_of_its_scores_is_told_from_an_evaluations_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = [Scores(120, noise=0.5, seed=seed) for seed in range(6)]
    for seed, scores in enumerate(every):
        shared = np.sqrt(3) * 0.5 * np.random.default_rng(seed + 100).standard_normal(15)
        scores.scores += shared[scores.generations]
    models = [scores.fit() for scores in every]
    monkeypatch.setattr(surrogate, "SHARED", (0.0,))
    unaware = [scores.fit() for scores in every]

    assert [m.noise * m.scale for m in models] == pytest.approx([0.5] * 6, rel=0.3)
    assert all(m.noise * m.scale > 0.7 for m in unaware)
    regrets, theirs = (
        np.mean([quadratic(lowest(model)[None])[0] for model in some]) for some in (models, unaware)
    )
    assert regrets < 0.5 * theirs


# Scores without a function behind them


@pytest.mark.parametrize(("scale", "shift"), [(1e-90, 0.0), (1e9, -1e3), (1e90, 1e6)])
def test_the_unit_and_the_level_of_the_scores_do_not_matter(scale: float, shift: float) -> None:
    scores = Scores(60, noise=0.1)
    model = scores.fit()
    other = fit(scores.points, scale * (scores.scores + shift), scores.generations)
    assert lowest(other) == pytest.approx(lowest(model), abs=1e-3)
    assert other.noise * other.scale == pytest.approx(scale * model.noise * model.scale, rel=1e-6)


@given(
    st.lists(st.floats(-MOST_SCORE, MOST_SCORE), min_size=8, max_size=16),
    st.integers(1, 4),
)
def test_whatever_the_scores_the_lowest_point_is_a_point(scores: list[float], size: int) -> None:
    points = np.random.default_rng(1).standard_normal((len(scores), 2))
    model = fit(points, np.array(scores), np.arange(len(scores)) // size)
    assert np.isfinite(lowest(model)).all()
    assert np.isfinite([model.noise, model.scale]).all()
