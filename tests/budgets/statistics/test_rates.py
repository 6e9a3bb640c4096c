"""Binomial counts and exact intervals of a rate, against tables."""

import pytest

from budgets.statistics.rates import at_least, at_most, highest_rate, lowest_rate, rate_interval


def test_tails_of_a_binomial_are_those_worked_out_by_hand() -> None:
    assert at_most(1, 4, 0.5) == pytest.approx(5 / 16)
    assert at_least(3, 4, 0.5) == pytest.approx(5 / 16)
    assert at_least(2, 12, 0.01) == pytest.approx(1 - 0.99**12 - 12 * 0.01 * 0.99**11)


def test_what_must_happen_does_and_what_cannot_does_not() -> None:
    assert at_least(0, 4, 0.0) == at_most(4, 4, 1.0) == at_most(0, 4, 0.0) == 1.0
    assert at_least(1, 4, 0.0) == at_most(3, 4, 1.0) == at_most(-1, 4, 0.5) == 0.0
    assert at_least(5, 4, 0.5) == 0.0


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [  # scipy.stats.binomtest(count, total).proportion_ci(0.95, "exact")
        (0, 8, 0.0, 0.369417),
        (1, 8, 0.003160, 0.526510),
        (8, 8, 0.630583, 1.0),
        (5, 120, 0.013666, 0.094559),
        (400, 4000, 0.090873, 0.109716),
    ],
)
def test_the_interval_is_that_of_clopper_and_pearson(
    count: int, total: int, low: float, high: float
) -> None:
    assert rate_interval(count, total) == pytest.approx((low, high), abs=1e-6)


def test_one_sided_bounds_spend_the_whole_level_on_their_side() -> None:
    assert highest_rate(0, 8, 0.05) == pytest.approx(1 - 0.05 ** (1 / 8))
    assert lowest_rate(8, 8, 0.05) == pytest.approx(0.05 ** (1 / 8))
    assert lowest_rate(1, 8, 0.05) > rate_interval(1, 8, 0.05)[0]


def test_no_trials_say_nothing_of_the_rate() -> None:
    assert rate_interval(0, 0) == (0.0, 1.0)
