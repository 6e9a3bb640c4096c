"""A larger search begins with what a smaller one has learned."""

import numpy as np
import pytest

from orchestrator.warm.blocks import blocks

SHAPE = ((1.5, 0.3), (0.3, 0.5))


def covariance(*arguments: object, **sigmas: float) -> list[list[float]]:
    start = blocks(*arguments, **sigmas)  # type: ignore[arg-type]
    found: list[list[float]] = (start.sigma0**2 * np.array(start.shape)).tolist()
    return found


def test_known_knobs_keep_their_block_in_the_larger_spaces_order() -> None:
    found = blocks(SHAPE, ("a", "b"), ("b", "new", "a"))
    assert np.array(found.shape) == pytest.approx(
        np.array([[0.5, 0, 0.3], [0, 1, 0], [0.3, 0, 1.5]])
    )
    assert found.sigma0 == pytest.approx(1.0)


def test_known_knobs_keep_their_deviations_and_new_ones_get_the_first_step() -> None:
    found = covariance(SHAPE, ("a", "b"), ("a", "b", "c", "d"), sigma=0.05, sigma0=0.2)
    roots = np.sqrt(np.diag(found))
    assert roots == pytest.approx(np.array([0.05 * np.sqrt(1.5), 0.05 * np.sqrt(0.5), 0.2, 0.2]))
    assert found[0][1] == pytest.approx(0.05**2 * 0.3)
    assert found[0][2] == found[2][3] == 0.0


def test_the_shape_has_a_mean_diagonal_of_1_whatever_the_sigmas() -> None:
    for sigma in (1e-3, 0.1, 1.0):
        found = blocks(SHAPE, ("a", "b"), ("a", "c", "b"), sigma=sigma, sigma0=0.2)
        assert np.mean(np.diag(found.shape)) == pytest.approx(1.0)
        assert np.linalg.eigvalsh(np.array(found.shape))[0] > 0


def test_a_knob_that_is_gone_is_left_out() -> None:
    found = covariance(SHAPE, ("a", "b"), ("b", "c"), sigma=0.1, sigma0=0.2)
    assert np.array(found) == pytest.approx(np.diag([0.1**2 * 0.5, 0.2**2]))


def test_the_same_space_gives_the_same_shape() -> None:
    found = blocks(SHAPE, ("a", "b"), ("a", "b"), sigma=0.07)
    assert np.array(found.shape) == pytest.approx(np.array(SHAPE))
    assert found.sigma0 == pytest.approx(0.07)


def test_names_that_are_not_the_shapes_or_not_unique_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a shape for 3 knobs, got \(2, 2\)"):
        blocks(SHAPE, ("a", "b", "c"), ("a",))
    with pytest.raises(ValueError, match="knob names must differ, got a, a"):
        blocks(SHAPE, ("a", "b"), ("a", "a"))
