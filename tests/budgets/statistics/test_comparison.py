"""Gains on shared seeds: which pairs count, in which unit, how sure they are."""

from math import sqrt
from statistics import variance

import pytest

from budgets.statistics.comparison import better, gain, unexplained
from budgets.statistics.detectable import detectable

LEVEL = 0.01
T_3 = 4.540703  # scipy.stats.t.ppf(0.99, 3)


def test_a_gain_is_relative_to_the_references_mean_and_positive_where_scores_are_lower() -> None:
    found = gain({1: 1.9, 2: 2.0}, {1: 2.0, 2: 2.1}, LEVEL)
    assert (found.pairs, found.mean) == pytest.approx((2, 0.1 / 2.05))


def test_what_a_seed_adds_to_both_moves_nothing() -> None:
    one = gain({1: 0.98, 2: 0.97, 3: 0.99}, {1: 1.0, 2: 1.0, 3: 1.0}, LEVEL)
    shifted = gain({1: 0.88, 2: 1.07, 3: 0.99}, {1: 0.9, 2: 1.1, 3: 1.0}, LEVEL)
    assert one.mean == pytest.approx(0.02)
    assert shifted.mean == pytest.approx(0.02)
    assert one.sd == pytest.approx(shifted.sd)


def test_bounds_are_students_t_over_the_pairs() -> None:
    gains = (0.01, 0.02, 0.03, 0.06)
    found = gain({s: 1 - g for s, g in enumerate(gains)}, dict.fromkeys(range(4), 1.0), LEVEL)
    sd = sqrt(sum((g - 0.03) ** 2 for g in gains) / 3)
    reach = T_3 * sd / 2
    assert (found.mean, found.sd) == pytest.approx((0.03, sd))
    assert (found.lower, found.upper) == pytest.approx((0.03 - reach, 0.03 + reach), abs=1e-6)
    assert found.level == LEVEL
    assert found.detectable == pytest.approx(detectable(sd, 4, LEVEL))
    assert not found.is_shown


def test_only_seeds_that_both_have_a_score_on_count() -> None:
    found = gain({1: 0.9, 2: 0.8, 9: 0.1}, {1: 1.0, 2: 1.0, 3: 50.0}, LEVEL)
    assert (found.pairs, found.mean) == pytest.approx((2, 0.15))


def test_below_zero_lower_scores_are_better_too() -> None:
    found = gain({1: -1.1, 2: -1.1}, {1: -1.0, 2: -1.0}, LEVEL)
    assert found.mean == pytest.approx(0.1)
    assert found.is_shown


@pytest.mark.parametrize(
    ("scores", "reference"),
    [({}, {}), ({1: 0.9}, {2: 1.0}), ({1: -0.1, 2: -0.1}, {1: 0.5, 2: -0.5})],
    ids=["nothing", "no shared seed", "a reference of 0"],
)
def test_without_a_unit_there_is_no_gain(
    scores: dict[int, float], reference: dict[int, float]
) -> None:
    found = gain(scores, reference, LEVEL)
    assert found.pairs == len(set(scores) & set(reference))
    assert found.mean is found.lower is found.upper is found.sd is found.detectable is None
    assert not found.is_shown


def test_one_pair_has_a_mean_and_no_bounds() -> None:
    found = gain({1: 0.9}, {1: 1.0}, LEVEL)
    assert (found.pairs, found.mean) == pytest.approx((1, 0.1))
    assert found.lower is found.upper is found.sd is found.detectable is None
    assert not found.is_shown


@pytest.mark.parametrize(("score", "is_shown"), [(0.5, True), (1.0, False), (1.5, False)])
def test_pairs_that_all_agree_are_sure(score: float, is_shown: bool) -> None:
    found = gain({1: score, 2: score}, {1: 1.0, 2: 1.0}, LEVEL)
    assert found.lower == found.mean == found.upper == 1.0 - score
    assert found.is_shown is is_shown
    assert found.detectable == 0.0


# What neither configuration nor seed explains


def test_what_a_seed_adds_to_all_and_a_configuration_everywhere_is_explained() -> None:
    rows = [{s: 1.0 + 0.1 * row + 0.7 * s for s in range(4)} for row in range(3)]
    squares, freedom = unexplained(rows)
    assert (squares, freedom) == pytest.approx((0.0, 6))


def test_of_two_configurations_it_is_half_the_variance_of_their_difference() -> None:
    one, other = {1: 1.0, 2: 3.0, 3: 5.0}, {1: 1.0, 2: 2.0, 3: 6.0}
    squares, freedom = unexplained([one, other])
    assert squares / freedom == pytest.approx(variance([0.0, 1.0, -1.0]) / 2)


def test_seeds_that_one_of_them_lacks_are_left_out() -> None:
    rows = [{1: 1.0, 2: 3.0, 3: 5.0}, {1: 1.0, 3: 6.0, 9: 4.0}]
    assert unexplained(rows) == pytest.approx((0.25, 1))  # two differences, of 0 and 1


@pytest.mark.parametrize(
    "rows",
    [[], [{1: 1.0, 2: 2.0}], [{1: 1.0}, {1: 2.0}], [{1: 1.0, 2: 2.0}, {}]],
    ids=["none", "one", "one seed", "one without scores"],
)
def test_too_few_say_nothing(rows: list[dict[int, float]]) -> None:
    assert unexplained(rows) == (0.0, 0)


# Words


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.013, "1.3% better"),
        (-0.00204, "0.204% worse"),
        (0.00996, "0.996% better"),  # and not 1.00%, of which it falls short
        (0.0, "no better"),
        (-1e-7, "no better"),
        (0.1234, "12.3% better"),
        (-12.5, "1250% worse"),
    ],
)
def test_a_share_is_better_or_worse(share: float, text: str) -> None:
    assert better(share) == text


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ((0.9, 0.91, 0.9), (True, False)),
        ((1.1, 1.11, 1.1), (False, True)),
        ((0.9, 1.1, 1.0), (False, False)),
        ((1.0, 1.0, 1.0), (False, False)),
        ((0.9,), (False, False)),
    ],
)
def test_a_gain_and_a_loss_are_each_more_than_chance(
    scores: tuple[float, ...], shown: tuple[bool, bool]
) -> None:
    found = gain(dict(enumerate(scores)), dict.fromkeys(range(3), 1.0), 0.05)
    assert (found.is_shown, found.is_loss) == shown
