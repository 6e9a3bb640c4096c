"""The search's linear algebra agrees with numpy; its bits: acceptance/test_kill_and_resume."""

import numpy as np
import numpy.typing as npt
import pytest

from orchestrator.search.arithmetic import Tridiagonal, dot, eigh, exp, log

Array = npt.NDArray[np.float64]


def matrix(count: int) -> Array:
    draws = np.random.default_rng(count).standard_normal((count, 2 * count))
    return np.array(draws @ draws.T)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 41])
def test_eigenvalues_and_eigenvectors_are_those_of_lapack(count: int) -> None:
    values, vectors = eigh(matrix(count))
    expected = np.linalg.eigvalsh(matrix(count))
    assert values == pytest.approx(expected, abs=1e-12 * expected[-1])
    assert vectors * values @ vectors.T == pytest.approx(matrix(count), abs=1e-12 * expected[-1])
    assert vectors.T @ vectors == pytest.approx(np.eye(count), abs=1e-13)


@pytest.mark.parametrize("count", [1, 2, 3, 60])
def test_a_tridiagonal_form_solves_and_has_its_determinant(count: int) -> None:
    covariance, right = matrix(count), np.arange(1.0, count + 1)
    added = np.array([1e-3, 1.0])
    form = Tridiagonal.of(covariance)
    pivots = form.pivots(added)
    forward = form.forward(pivots, form.turned(right[:, None]))[:, :, 0]
    for column, each in enumerate(added):
        whole = covariance + each * np.eye(count)
        solution = form.backward(pivots[:, column], forward[:, column])[:, None]
        found = form.turned(solution, back=True)[:, 0]
        assert found == pytest.approx(np.linalg.solve(whole, right), rel=1e-9)
        square = np.sum(forward[:, column] ** 2 / pivots[:, column])
        assert square == pytest.approx(right @ np.linalg.solve(whole, right), rel=1e-9)
        assert np.sum(log(pivots[:, column])) == pytest.approx(np.linalg.slogdet(whole)[1])


def test_functions_and_products_are_those_of_numpy() -> None:
    values = np.linspace(-700, 700, 10_001)
    assert exp(values) == pytest.approx(np.exp(values), rel=1e-15)
    assert exp(-1e300) == 0
    positive = np.exp(values)
    assert log(positive) == pytest.approx(values, rel=1e-15, abs=1e-15)
    rows, vector = values[:12].reshape(3, 4), values[12:16]
    assert dot(rows, vector) == pytest.approx(rows @ vector)
    assert dot(vector, rows.T) == pytest.approx(vector @ rows.T)
    assert dot(rows, rows.T) == pytest.approx(rows @ rows.T)
    assert dot(vector, vector) == pytest.approx(vector @ vector)
