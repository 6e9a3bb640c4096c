"""A distribution's deviations and correlations, for people and for a phase 2."""

import numpy as np
import pytest

from orchestrator.search.landscape import landscape

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
