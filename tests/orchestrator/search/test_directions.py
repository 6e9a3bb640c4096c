"""Directions are standard normal and depend on seed and generation alone."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.arithmetic import chained, independent

Rows = npt.NDArray[np.float64]


def are_orthogonal(block: Rows) -> bool:
    gram = block @ block.T
    return np.allclose(gram, np.diag(np.diag(gram)), atol=1e-9)


@given(pairs=st.integers(1, 9), dimension=st.integers(1, 8))
def test_a_chain_looks_along_every_direction_before_it_looks_along_one_again(
    pairs: int, dimension: int
) -> None:
    numbers = range(2 + 3 * dimension // pairs)
    generations = [chained(11, number, 2 * pairs, dimension) for number in numbers]
    assert all(np.array_equal(g[::2], -g[1::2]) for g in generations)
    ends = np.concatenate([generation[::2] for generation in generations])
    for block in (ends[i : i + dimension] for i in range(0, len(ends), dimension)):
        assert are_orthogonal(block)
    assert len(np.unique(ends, axis=0)) == len(ends)


@pytest.mark.parametrize("draw", [independent, chained])
def test_every_direction_alone_is_standard_normal(draw: Callable[..., Rows]) -> None:
    rows = np.concatenate([draw(5, number, 8, 10) for number in range(2000)])[::2]
    assert abs(rows.mean()) < 0.02
    assert abs(rows.std() - 1.0) < 0.02
    assert np.cov(rows.T) == pytest.approx(np.eye(10), abs=0.06)
    lengths = (rows**2).sum(axis=1)
    assert abs(lengths.mean() - 10.0) < 0.3  # chi-squared with 10 degrees of freedom
    assert abs(lengths.var() - 20.0) < 2.0
    assert abs((rows[:, 3] ** 4).mean() - 3.0) < 0.3
