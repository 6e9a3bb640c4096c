"""Chi-square and what it says of a standard deviation, against printed tables."""

from math import inf

import pytest

from budgets.statistics.spread import limit_above, sd_interval, share_above


@pytest.mark.parametrize(
    ("share", "freedom", "limit"),
    [  # scipy.stats.chi2.isf(share, freedom)
        (0.05, 1, 3.841),
        (0.05, 2, 5.991),
        (0.975, 7, 1.690),
        (0.025, 7, 16.013),
        (0.975, 1, 0.001),
        (0.001, 30, 59.703),
        (0.95, 100, 77.929),
        (0.025, 999, 1088.487),
    ],
)
def test_the_limits_are_those_of_the_tables(share: float, freedom: int, limit: float) -> None:
    assert round(limit_above(share, freedom), 3) == limit
    assert share_above(limit_above(share, freedom), freedom) == pytest.approx(share)


def test_many_degrees_of_freedom_do_not_underflow() -> None:
    assert share_above(5000.0, 5000) == pytest.approx(0.497340, abs=1e-6)  # chi2.sf(5000, 5000)


def test_nothing_is_above_nothing() -> None:
    assert share_above(0.0, 3) == 1.0


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [  # sqrt((n - 1) / scipy.stats.chi2.isf((0.025, 0.975), n - 1))
        (2, 0.446149, 31.910159),
        (8, 0.661174, 2.035272),
        (30, 0.796407, 1.344315),
    ],
)
def test_the_interval_of_a_standard_deviation_is_that_of_the_tables(
    n: int, low: float, high: float
) -> None:
    assert sd_interval(1.0, n) == pytest.approx((low, high), rel=2e-6)
    assert sd_interval(0.02, n) == pytest.approx((0.02 * low, 0.02 * high), rel=2e-6)


def test_a_level_held_smaller_gives_a_wider_interval() -> None:
    low, high = sd_interval(1.0, 8, 0.01)
    assert low < 0.661174
    assert high > 2.035272


def test_one_sample_says_nothing_of_the_spread() -> None:
    assert sd_interval(0.0, 1) == (0.0, inf)
