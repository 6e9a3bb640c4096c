"""Paired differences against numbers worked out by hand."""

import pytest

from budgets.statistics.paired import chance, count_needed, discoveries, paired

ONE_TO_FOUR = (1.0, 2.0, 3.0, 4.0)
"""Mean 2.5, sd 1.2910, standard error 0.6455, t 3.873; its limit at level 0.05 is 3.182."""


def test_mean_standard_error_and_t_are_those_worked_out_by_hand() -> None:
    assert paired(ONE_TO_FOUR) == pytest.approx((2.5, 0.645497, 3.872983), abs=1e-6)


def test_one_difference_says_nothing() -> None:
    assert paired((1.0,)) == (None, None, None)
    assert chance((1.0,)) == 1.0


def test_differences_without_spread_have_no_t_and_are_sure_unless_zero() -> None:
    assert paired((0.5, 0.5)) == (0.5, 0.0, None)
    assert chance((0.5, 0.5)) == 0.0
    assert chance((0.0, 0.0)) == 1.0


def test_a_t_of_3_87_on_3_degrees_of_freedom_has_a_chance_of_0_0305() -> None:
    assert chance(ONE_TO_FOUR) == pytest.approx(0.0305, abs=1e-4)
    assert chance([-d for d in ONE_TO_FOUR]) == pytest.approx(0.0305, abs=1e-4)


@pytest.mark.parametrize(
    ("chances", "believed"),
    [
        ((0.9, 0.8, 0.5), 0),
        ((0.012, 0.9, 0.8, 0.5), 1),  # 0.05 / 4 = 0.0125
        ((0.013, 0.9, 0.8, 0.5), 0),
        ((0.013, 0.9, 0.024, 0.5), 2),  # 2 * 0.05 / 4 = 0.025 carries the first one too
        ((0.05, 0.05, 0.05), 3),
        ((), 0),
    ],
)
def test_findings_are_believed_together_as_benjamini_and_hochberg_do(
    chances: tuple[float, ...], believed: int
) -> None:
    assert discoveries(chances, 0.05) == believed


@pytest.mark.parametrize(
    ("t", "needed"),
    [
        (2.0, 7),  # 2 sqrt(6/4) = 2.449 < 2.571 (5 df); 2 sqrt(7/4) = 2.646 > 2.447 (6 df)
        (1.0, 18),  # sqrt(17/4) = 2.062 < 2.120 (16 df); sqrt(18/4) = 2.121 > 2.110 (17 df)
    ],
)
def test_the_count_needed_is_the_first_whose_t_passes_its_limit(t: float, needed: int) -> None:
    assert count_needed(t, 4, 0.05, 1000) == needed
    assert count_needed(-t, 4, 0.05, 1000) == needed


def test_what_no_allowed_count_would_show_has_none() -> None:
    assert count_needed(0.0, 4, 0.05, 1000) is None
    assert count_needed(1.0, 4, 0.05, 17) is None
    assert count_needed(1.0, 4, 0.05, 18) == 18
