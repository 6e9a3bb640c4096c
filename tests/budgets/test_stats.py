"""Statistics of few scores against scipy.stats, printed tables and numbers worked out by hand."""

from math import inf, sqrt
from random import Random

import pytest
from scipy import stats

from budgets.stats import (
    believed,
    chance,
    detectable,
    gain,
    gain_of,
    interval,
    one_sided_limit,
    tau_b,
    tau_b_interval,
)

RISING = (1.0, 2.0, 3.0, 4.0)
NOISY = (0.3, 0.1, 0.5, 0.4, 0.9, 0.7, 0.8, 1.1, 1.0, 1.2)
LEVEL = 0.01


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - no secret hangs on it


def test_the_chance_and_the_interval_of_differences_are_those_of_students_t() -> None:
    test = stats.ttest_1samp(RISING, 0)
    assert chance(RISING) == pytest.approx(test.pvalue)
    assert interval(RISING, 0.05) == pytest.approx(test.confidence_interval(0.95))
    assert one_sided_limit(0.05, 999) == pytest.approx(stats.t.isf(0.05, 999))
    assert interval((1.0,), 0.05) is None
    assert (chance((1.0,)), chance((0.5, 0.5)), chance((0.0, 0.0))) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("chances", "count"),
    [
        ((0.9, 0.8, 0.5), 0),
        ((0.012, 0.9, 0.8, 0.5), 1),  # 0.05 / 4 = 0.0125
        ((0.013, 0.9, 0.8, 0.5), 0),
        ((0.013, 0.9, 0.024, 0.5), 2),  # 2 * 0.05 / 4 = 0.025 carries the first one too
        ((), 0),
    ],
)
def test_findings_hold_together_as_benjamini_and_hochberg_say(
    chances: tuple[float, ...], count: int
) -> None:
    assert sum(believed((None, *chances), 0.05)) == count


# Gains


def test_a_gain_is_relative_to_the_reference_on_shared_seeds() -> None:
    gains = (0.01, 0.02, 0.03, 0.06)
    scores = {seed: 2 * (1 - g) for seed, g in enumerate(gains)}
    found = gain({**scores, 9: 0.1}, dict.fromkeys(range(5), 2.0), LEVEL)
    sd = sqrt(sum((g - 0.03) ** 2 for g in gains) / 3)
    reach = 4.540703 * sd / 2  # stats.t.isf(0.01, 3)
    assert (found.pairs, found.mean, found.sd) == pytest.approx((4, 0.03, sd))
    assert (found.lower, found.upper) == pytest.approx((0.03 - reach, 0.03 + reach), abs=1e-6)
    assert found.detectable == pytest.approx(detectable(sd, 4, LEVEL))
    assert not found.is_shown
    assert gain({1: -1.1, 2: -1.1}, {1: -1.0, 2: -1.0}, LEVEL).mean == pytest.approx(0.1)


def test_a_gain_in_the_last_digits_is_none() -> None:
    found = gain_of([1e-13, -3e-13, 2e-13], 1.0, LEVEL)
    assert (found.mean, found.chance) == (0.0, 1.0)


# Power


@pytest.mark.parametrize(
    ("n", "level", "gain"), [(2, 0.05, 5.7928), (8, 0.01, 1.39992), (100, 0.05, 0.25036)]
)
def test_the_detectable_gain_has_the_power_asked_for(n: int, level: float, gain: float) -> None:
    assert detectable(0.02, n, level) == pytest.approx(0.02 * gain, rel=3e-5)
    missed = stats.nct.cdf(one_sided_limit(level, n - 1), n - 1, gain * sqrt(n))
    assert 1 - missed == pytest.approx(0.8, abs=1e-4)
    assert detectable(0.0, n, level) == 0.0


# Agreement


@pytest.mark.parametrize("seed", range(5))
def test_tau_b_is_that_of_scipy(seed: int) -> None:
    random = seeded(seed)
    a, b = ([float(random.randrange(9)) for _ in range(12)] for _ in "ab")
    assert tau_b(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)


def test_infinite_scores_of_failed_candidates_tie_in_tau_b() -> None:
    a, b = (1.0, 2.0, inf, inf), (1.0, 2.0, 3.0, inf)
    assert (tau_b(a, b), tau_b(b, a)) == pytest.approx((0.912871, 0.912871), abs=1e-6)
    assert tau_b((1.0, 1.0), (1.0, 2.0)) is None


def test_the_interval_is_the_same_for_the_same_generator_and_holds_tau_b() -> None:
    scores = tuple(float(n) for n in range(10))
    interval = tau_b_interval(scores, NOISY, seeded(1))
    assert interval == tau_b_interval(scores, NOISY, seeded(1))
    assert interval != tau_b_interval(scores, NOISY, seeded(2))
    assert interval is not None
    low, high = interval
    assert 0.3 < low < 0.777778 < high <= 1.0
