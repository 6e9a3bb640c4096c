"""A sum that every Python adds up alike."""

from budgets.statistics.totals import total


def test_values_are_added_one_after_another() -> None:
    assert total([1e16, 1.0, 1.0]) == 1e16  # what a compensated sum keeps is rounded away twice
    assert total(iter([0.1] * 10)) == 0.9999999999999999


def test_the_total_of_nothing_is_zero() -> None:
    assert total([]) == 0.0
