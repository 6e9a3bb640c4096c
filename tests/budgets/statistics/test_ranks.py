"""Agreement of two lists of scores against scipy and numbers worked out by hand."""

from random import Random

import pytest

from budgets.statistics.ranks import centred_error, tau_b, tau_b_interval, top_overlap

RISING = (1.0, 2.0, 3.0, 4.0)
NOISY = (0.3, 0.1, 0.5, 0.4, 0.9, 0.7, 0.8, 1.1, 1.0, 1.2)


@pytest.mark.parametrize(
    ("a", "b", "tau"),
    [  # scipy.stats.kendalltau(a, b).statistic
        (RISING, (10.0, 20.0, 30.0, 40.0), 1.0),
        (RISING, (4.0, 3.0, 2.0, 1.0), -1.0),
        (RISING, (1.0, 3.0, 2.0, 4.0), 2 / 3),
        ((1.0, 1.0, 2.0, 3.0), (1.0, 2.0, 2.0, 3.0), 0.8),
        ((12.0, 2.0, 1.0, 12.0, 2.0), (1.0, 4.0, 7.0, 1.0, 0.0), -0.471405),
        (range(10), NOISY, 0.777778),
    ],
)
def test_tau_b_is_that_of_kendall_with_ties(
    a: tuple[float, ...], b: tuple[float, ...], tau: float
) -> None:
    assert tau_b(a, b) == pytest.approx(tau, abs=1e-6)
    assert tau_b(b, a) == pytest.approx(tau, abs=1e-6)


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - no secret hangs on it


def test_scores_that_are_all_equal_or_alone_have_no_order() -> None:
    assert tau_b((1.0, 1.0, 1.0), (1.0, 2.0, 3.0)) is None
    assert tau_b((1.0,), (2.0,)) is tau_b((), ()) is None
    assert tau_b_interval((1.0, 1.0, 1.0), (1.0, 2.0, 3.0), seeded(1)) is None
    assert tau_b_interval((1.0,), (2.0,), seeded(1)) is None


def test_the_interval_is_the_same_for_the_same_generator_and_holds_tau_b() -> None:
    scores = tuple(float(n) for n in range(10))
    interval = tau_b_interval(scores, NOISY, seeded(1))
    assert interval == tau_b_interval(scores, NOISY, seeded(1))
    assert interval != tau_b_interval(scores, NOISY, seeded(2))
    assert interval is not None
    low, high = interval
    assert 0.3 < low < 0.777778 < high <= 1.0


def test_lists_in_one_order_leave_the_interval_no_width() -> None:
    assert tau_b_interval(RISING, RISING, seeded(1)) == (1.0, 1.0)


def test_a_wider_level_gives_a_narrower_interval() -> None:
    scores = tuple(float(n) for n in range(10))
    narrow = tau_b_interval(scores, NOISY, seeded(1), level=0.5)
    wide = tau_b_interval(scores, NOISY, seeded(1), level=0.01)
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(("k", "share"), [(1, 0.0), (2, 1.0), (3, 2 / 3), (4, 1.0)])
def test_the_share_of_the_best_is_counted_from_the_lowest(k: int, share: float) -> None:
    first, second = (1.0, 2.0, 3.0, 4.0, 5.0), (0.2, 0.1, 0.4, 0.3, 0.5)
    assert top_overlap(first, second, k) == pytest.approx(share)
    assert top_overlap(second, first, k) == pytest.approx(share)


def test_of_equal_scores_the_earlier_is_among_the_best() -> None:
    assert top_overlap((1.0, 1.0, 1.0), (1.0, 2.0, 3.0), 1) == 1.0
    assert top_overlap((1.0, 1.0, 1.0), (3.0, 2.0, 1.0), 1) == 0.0


@pytest.mark.parametrize("k", [0, 5])
def test_the_best_of_more_than_there_are_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="a k from 1 to 4"):
        top_overlap(RISING, RISING, k)


def test_a_constant_shift_is_no_error_and_a_spread_is() -> None:
    assert centred_error(RISING, tuple(score + 5 for score in RISING)) == pytest.approx(0.0)
    assert centred_error((1.0, 2.0, 6.0), (0.0, 0.0, 0.0)) == pytest.approx(2.0)  # mean 3


def test_lists_of_different_lengths_are_refused() -> None:
    for compared in (
        lambda: tau_b(RISING, NOISY),
        lambda: tau_b_interval(RISING, NOISY, seeded(1)),
        lambda: top_overlap(RISING, NOISY, 1),
        lambda: centred_error(RISING, NOISY),
    ):
        with pytest.raises(ValueError, match="got 4 and 10"):
            compared()
    with pytest.raises(ValueError, match="at least one"):
        centred_error((), ())
