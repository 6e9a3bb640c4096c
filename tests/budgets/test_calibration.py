"""From the measured baseline to times, device-hours and money."""

from typing import Any

import pytest
from pydantic import ValidationError

from budgets.calibration import (
    Noise,
    best_of_noise,
    measure,
    noise,
)
from budgets.events import Status
from budgets.plan import Calibration, Caps, Envelope, Sample
from tests.budgets.conftest import Story, make_story, sample, small_plan


@pytest.mark.parametrize(("evaluations", "deviations"), [(16, 1.8), (120, 2.6), (480, 3.0)])
def test_the_best_of_pure_noise_looks_like_a_gain(evaluations: int, deviations: float) -> None:
    assert round(best_of_noise(evaluations), 1) == deviations


@pytest.fixture
def calibration_story() -> Story:
    """Four seeds of the baseline are asked for."""
    envelope = Envelope(population=1, generations=1, seeds_per_candidate=4)
    story = make_story(
        phase="calibration", tier=None, resolved=envelope, search=None, calibration=None
    )
    story.ask(seeds=(1, 2, 3, 4))
    return story


def test_a_calibration_run_measures_what_its_healthy_evaluations_say(
    calibration_story: Story,
) -> None:
    measured: dict[str, Any] = {
        "seconds": 3.0,
        "startup_seconds": 0.5,
        "train_seconds": 2.0,
        "cpu_seconds": 2.5,
        "peak_memory_bytes": 7,
        "steps": 8,
        "tokens": 9,
        "train_flops": 1e10,
        "eval_flops": 1e9,
    }
    calibration_story.evaluate(0, 1.5, seed=1, **measured)
    calibration_story.evaluate(0, Status.OOM, seed=2)
    calibration_story.evaluate(0, 2.5, seed=3, seconds=5.0)
    calibration_story.evaluate(0, 2.0, seed=4, seconds=4.0)

    calibration = measure(calibration_story.state)

    assert calibration.samples[0] == Sample(seed=1, score=1.5, **measured)
    assert [s.seed for s in calibration.samples] == [1, 3, 4]
    assert calibration.failed == 1
    assert calibration.ledger == calibration_story.state.head
    assert calibration.median_seconds == 4.0
    assert calibration.p90_seconds == pytest.approx(4.8)
    assert calibration.median_cpu_seconds == 2.0
    assert calibration.mean_score == 2.0
    assert calibration.sd_score == 0.5


def test_a_baseline_that_always_fails_cannot_be_measured(calibration_story: Story) -> None:
    calibration_story.evaluate(0, Status.OOM, seed=1)
    calibration_story.evaluate(0, Status.ERROR, seed=2, cause="no such file")
    with pytest.raises(ValueError, match="cannot be evaluated: no such file"):
        measure(calibration_story.state)


# What luck alone would show


def test_the_noise_is_the_spread_over_seeds_with_its_interval() -> None:
    samples = tuple(sample(score=score) for score in (3.0, 3.02, 3.04))
    found = noise(Calibration(samples=samples, failed=1))
    assert found is not None
    assert (found.mean, found.sd) == pytest.approx((3.02, 0.02))
    # sqrt(2 / scipy.stats.chi2.isf((0.025, 0.975), 2)) * 0.02
    assert found.sd_limits == pytest.approx((0.010413, 0.125695), abs=1e-6)
    assert (found.seeds, found.failed) == (3, 1)


@pytest.mark.parametrize(
    ("mean", "sd", "seeds", "is_so"),
    [
        (0.0, None, 1, True),
        (7e-18, 0.0, 8, True),
        (0.29, 0.2, 4, True),  # three standard errors are 0.3
        (0.31, 0.2, 4, False),
    ],
)
def test_a_baseline_within_three_standard_errors_of_0_is_about_0(
    mean: float, sd: float | None, seeds: int, is_so: bool
) -> None:
    found = Noise(mean, sd, seeds, 0)
    assert found.is_about_zero is is_so


# PlanPart that cannot be agreed on


def test_an_envelope_beyond_the_cap_on_evaluations_is_no_plan() -> None:
    assert small_plan(caps=Caps(evaluations=8))
    with pytest.raises(ValidationError, match="8 evaluations exceed the cap of 7"):
        small_plan(caps=Caps(evaluations=7))


def test_the_noise_band_and_luck_are_of_means_over_the_seeds_of_a_candidate() -> None:
    found = Noise(2.0, 2**0.5, 2, 0)
    assert found.band(4) == pytest.approx((2 - 2**0.5, 2 + 2**0.5))
    best = found.mean - 2**0.5 / 2 * best_of_noise(16)
    assert found.best_by_chance(16, 4) == pytest.approx(best)
    assert found.best_by_chance(16, 4, sign=-1) == pytest.approx(2 * found.mean - best)
    assert found.best_by_chance(1, 4) == found.mean
    assert noise(None) is noise(Calibration(assumed_seconds=1.0)) is None
    unknown = Noise(2.0, None, 1, 0)
    assert (unknown.best_by_chance(16, 4), unknown.band(4), found.best_by_chance(0, 4)) == (
        None,
        None,
        None,
    )
