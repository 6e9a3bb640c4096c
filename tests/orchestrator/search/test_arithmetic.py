"""The search's linear algebra agrees with numpy and has the same bits on every processor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from orchestrator.search.arithmetic import Tridiagonal, dot, eigh, exp, log

Array = npt.NDArray[np.float64]

OLDEST = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
}
"""What makes the libraries choose the code that they have for an old processor."""

SEARCHES = """
from random import Random
from budgets.plan import SearchPlan
from orchestrator.search import Search
from tests.orchestrator.search.conftest import closed
for dimension, population in ((1, 6), (4, 8), (10, 12)):
    plan = SearchPlan(method="guided", seed=3, sigma0=0.15, start=(0.5,) * dimension)
    search, noise = Search(plan, population), Random(7)
    for number in range(9):
        points = search.ask()
        scores = [sum((u - 0.9) * (u - 0.9) for u in p) + 0.05 * noise.random() for p in points]
        told = search.tell(closed(number, points, [None, *scores[1:]]))
        print(points, told, search.distribution)
"""


def bits(**environment: str) -> str:
    """Everything that some searches propose and learn, on such a processor."""
    return subprocess.check_output(
        [sys.executable, "-c", SEARCHES],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environment},
        text=True,
    )


def test_a_search_has_the_same_bits_on_every_processor() -> None:
    assert bits(PYTHONPATH=".", OPENBLAS_CORETYPE="Haswell") == bits(PYTHONPATH=".", **OLDEST)


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
