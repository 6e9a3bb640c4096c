"""The power of a one-sided paired t test against the noncentral t distribution."""

import pytest

from budgets.statistics.detectable import detectable, power_of


@pytest.mark.parametrize(
    ("shift", "n", "level", "power"),
    [  # scipy.stats.nct.sf(scipy.stats.t.isf(level, n - 1), n - 1, shift)
        (1.0, 2, 0.05, 0.134790),
        (2.0, 3, 0.05, 0.383889),
        (5.0, 5, 0.01, 0.819649),
        (3.0, 5, 0.10, 0.915461),
        (2.0, 8, 0.05, 0.562748),
        (10.0, 8, 0.001, 0.999231),
        (3.0, 32, 0.05, 0.901243),
        (3.0, 100, 0.001, 0.435496),
        (3.0, 1000, 0.05, 0.911990),
    ],
)
def test_the_power_is_a_tail_of_the_noncentral_t(
    shift: float, n: int, level: float, power: float
) -> None:
    assert power_of(shift / n**0.5, 1.0, n, level) == pytest.approx(power, abs=3e-6)


def test_no_gain_is_shown_with_the_probability_of_the_level() -> None:
    assert power_of(0.0, 0.3, 8, 0.05) == pytest.approx(0.05, abs=2e-6)


def test_power_depends_on_the_gain_in_standard_deviations_alone() -> None:
    assert power_of(0.03, 0.02, 8, 0.05) == pytest.approx(power_of(1.5, 1.0, 8, 0.05), abs=1e-9)


@pytest.mark.parametrize(
    ("gain", "n", "level", "at_least", "power"),
    [  # scipy.integrate.quad of stats.chi.pdf(u sqrt(f), f) sqrt(f) * stats.norm.sf(...) over u
        (0.5, 5, 0.05, 0.5, 0.228858),
        (1.0, 8, 0.05, 0.5, 0.809400),
        (1.0, 8, 0.01, 1.0, 0.386008),
        (2.0, 3, 0.05, 0.2, 0.712155),
    ],
)
def test_a_gain_must_also_be_observed_as_large_as_asked(
    gain: float, n: int, level: float, at_least: float, power: float
) -> None:
    assert power_of(gain, 1.0, n, level, at_least) == pytest.approx(power, abs=3e-6)


def test_a_gain_just_as_large_as_asked_is_observed_so_half_the_time() -> None:
    assert power_of(1.0, 0.1, 50, 0.05, at_least=1.0) == pytest.approx(0.5, abs=2e-6)


@pytest.mark.parametrize(
    ("n", "level", "gain"),
    [  # bisection of stats.nct.sf(stats.t.isf(level, n - 1), n - 1, gain sqrt(n)) = 0.8
        (2, 0.05, 5.7928),
        (3, 0.05, 2.2973),
        (5, 0.05, 1.3594),
        (8, 0.05, 0.97816),
        (8, 0.01, 1.39992),
        (16, 0.05, 0.65170),
        (100, 0.05, 0.25036),
    ],
)
def test_the_detectable_gain_has_the_power_asked_for(n: int, level: float, gain: float) -> None:
    assert detectable(1.0, n, level) == pytest.approx(gain, rel=3e-5)
    assert detectable(0.02, n, level) == pytest.approx(0.02 * gain, rel=3e-5)


def test_more_pairs_more_power_and_a_larger_least_gain_change_what_is_detectable() -> None:
    usual = detectable(1.0, 8, 0.05)
    assert detectable(1.0, 9, 0.05) < usual < detectable(1.0, 8, 0.05, power=0.9)
    assert detectable(1.0, 8, 0.05, at_least=0.9) > usual
    assert power_of(detectable(1.0, 8, 0.05, 0.9, 0.9), 1.0, 8, 0.05, 0.9) == pytest.approx(
        0.9, abs=1e-4
    )


def test_pairs_that_do_not_spread_show_any_gain_that_is_large_enough() -> None:
    assert power_of(0.1, 0.0, 2, 0.05) == 1.0
    assert power_of(0.0, 0.0, 2, 0.05) == 0.0
    assert power_of(0.1, 0.0, 2, 0.05, at_least=0.2) == 0.0
    assert detectable(0.0, 2, 0.05) == 0.0
    assert detectable(0.0, 2, 0.05, at_least=0.2) == 0.2


def test_a_loss_far_beyond_the_noise_is_never_shown_as_a_gain() -> None:
    assert power_of(-100.0, 1.0, 8, 0.05) == 0.0


@pytest.mark.parametrize(("n", "level"), [(1, 0.05), (8, 0.0), (8, 0.5)])
def test_a_test_without_spread_or_level_is_none(n: int, level: float) -> None:
    with pytest.raises(ValueError, match="2 pairs"):
        power_of(1.0, 1.0, n, level)
    with pytest.raises(ValueError, match="2 pairs"):
        detectable(1.0, n, level)


@pytest.mark.parametrize("power", [0.05, 1.0])
def test_a_power_that_chance_reaches_or_nothing_does_is_refused(power: float) -> None:
    with pytest.raises(ValueError, match="expected a power above"):
        detectable(1.0, 8, 0.05, power)
