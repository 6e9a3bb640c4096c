"""The sums that people do by hand, with the numbers they were written down with."""

import pytest

from budgets.sums import (
    campaign_seconds,
    checkpoint_bytes,
    effective_parallelism,
    hours_of_tokens,
    seconds_of_steps,
    steps_of_samples,
    total_tokens,
)


@pytest.mark.parametrize(
    ("samples", "tokens_per_second", "hours"),
    [(8_000, 800, 4.17), (8_000, 400, 8.33), (16_000, 800, 8.33)],
)
def test_tokens_over_throughput_are_hours(
    samples: int, tokens_per_second: float, hours: float
) -> None:
    tokens = total_tokens(samples, 500, 3)
    assert tokens == samples * 1500
    assert hours_of_tokens(tokens, tokens_per_second) == pytest.approx(hours, abs=0.005)


def test_steps_over_speed_are_seconds() -> None:
    """10,000 words, 8 of 10 to train on, in batches of 4: 8 minutes an epoch, 16 for two."""
    assert steps_of_samples(8_000, 4) == 2_000
    steps = steps_of_samples(8_000, 4, epochs=2)
    assert seconds_of_steps(steps // 2, 4.34) == pytest.approx(460, abs=1)
    assert seconds_of_steps(steps, 4.34) / 60 == pytest.approx(16, abs=0.7)


def test_a_last_batch_that_is_not_full_is_a_step_too() -> None:
    assert steps_of_samples(9, 4) == 3


@pytest.mark.parametrize(("steps_per_hour", "minutes"), [(300, 10), (500, 6), (150, 20)])
def test_fifty_batches_are_a_quick_test(steps_per_hour: float, minutes: float) -> None:
    assert seconds_of_steps(50, steps_per_hour / 3600) / 60 == pytest.approx(minutes)


@pytest.mark.parametrize(("interval", "gigabytes"), [(50, 300), (100, 150), (500, 30)])
def test_checkpoints_that_are_all_kept_fill_the_disk(interval: int, gigabytes: float) -> None:
    assert checkpoint_bytes(4, 3738, interval) == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    ("runs", "parallel", "max_workers", "max_concurrent", "expected"),
    [
        (12, True, 4, None, 4),
        (3, True, 4, None, 3),
        (12, True, None, None, 12),
        (12, True, 12, 4, 4),
        (12, False, 4, 4, 1),
    ],
)
def test_so_many_runs_go_on_at_once(
    runs: int,
    parallel: bool,
    max_workers: int | None,
    max_concurrent: int | None,
    expected: int,
) -> None:
    found = effective_parallelism(
        runs, parallel=parallel, max_workers=max_workers, max_concurrent=max_concurrent
    )
    assert found == expected


def test_a_campaign_takes_its_runs_over_those_at_once_and_the_stagger() -> None:
    assert campaign_seconds(runs=12, median_seconds=600, effective=4) == 1800
    assert campaign_seconds(12, 600, 4, stagger_seconds=8) == 1800 + 3 * 8


def test_counted_in_steps_a_campaign_takes_the_same() -> None:
    conditions, seeds, max_steps, step_seconds = 3, 4, 50, 12.0
    steps = campaign_seconds(conditions * seeds * max_steps, step_seconds, 4)
    assert steps == campaign_seconds(conditions * seeds, max_steps * step_seconds, 4) == 1800


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: hours_of_tokens(1, 0),
        lambda: seconds_of_steps(1, 0),
        lambda: steps_of_samples(1, 0),
        lambda: checkpoint_bytes(1, 1, 0),
        lambda: campaign_seconds(1, 1, 0),
    ],
)
def test_what_must_be_positive_is_asked_for(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match="expected more than 0, got 0"):
        wrong()
