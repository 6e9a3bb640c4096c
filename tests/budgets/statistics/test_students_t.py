"""Student's t against printed tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.statistics.students_t import one_sided_limit, share_within, two_sided_limit


@pytest.mark.parametrize(
    ("level", "freedom", "limit"),
    [
        (0.05, 1, 12.706),
        (0.05, 2, 4.303),
        (0.05, 3, 3.182),
        (0.05, 7, 2.365),
        (0.05, 30, 2.042),
        (0.05, 120, 1.980),
        (0.01, 1, 63.657),
        (0.01, 7, 3.499),
        (0.01, 10, 3.169),
        (0.001, 7, 5.408),
        (0.001, 30, 3.646),
        (0.2, 4, 1.533),
    ],
)
def test_the_two_sided_limits_are_those_of_the_tables(
    level: float, freedom: int, limit: float
) -> None:
    assert round(two_sided_limit(level, freedom), 3) == limit


def test_one_degree_of_freedom_is_the_cauchy_distribution() -> None:
    assert share_within(1.0, 1) == pytest.approx(0.5)


def test_two_degrees_of_freedom_have_a_closed_form() -> None:
    assert share_within(3.0, 2) == pytest.approx(3 / (2 + 9) ** 0.5)


def test_many_degrees_of_freedom_are_nearly_normal() -> None:
    assert share_within(1.959964, 999) == pytest.approx(0.95, abs=4e-4)


@given(st.floats(1e-6, 0.5), st.integers(1, 300))
def test_the_limit_is_exceeded_with_the_probability_asked_for(level: float, freedom: int) -> None:
    assert 1 - share_within(two_sided_limit(level, freedom), freedom) == pytest.approx(level)


@pytest.mark.parametrize(
    ("level", "freedom", "limit"),
    [
        (0.05, 1, 6.314),
        (0.05, 7, 1.895),
        (0.01, 7, 2.998),
        (0.001, 30, 3.385),
        (0.5, 4, 0.0),
        (0.95, 7, -1.895),
    ],
)
def test_the_one_sided_limits_are_those_of_the_tables(
    level: float, freedom: int, limit: float
) -> None:
    assert round(one_sided_limit(level, freedom), 3) == limit  # scipy.stats.t.isf(level, freedom)
