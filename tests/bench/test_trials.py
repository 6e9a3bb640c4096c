"""A few of the runs that `scripts/bench/verdicts` repeats hundreds of times."""

from pathlib import Path

import pytest

from scripts.bench.bench import rate_interval
from scripts.bench.trials import TRIALS, Ending, Trial, ending

SEED = 1  # seed_luck fires in about 70 % of its runs (docs/search.md), in this one too
BY_NAME = {trial.name: trial for trial in TRIALS}
pytestmark = pytest.mark.slow


def end(trial: Trial, seed: int, place: Path) -> Ending:
    return ending(trial, seed, place / "run")


def test_a_seed_gives_one_ending_and_leaves_no_files(place: Path) -> None:
    """Here a gain of 2 %, which gets a Go with most of it."""
    trial = BY_NAME["sphere 2.0%"]
    found = end(trial, 0, place)
    assert end(trial, 0, place) == found
    assert end(trial, 4, place) != found
    assert list(place.iterdir()) == []
    assert len(BY_NAME) == len(TRIALS)
    assert found.is_go
    assert found.gain is not None
    assert 0.01 < found.gain <= 0.02


def test_a_gain_that_is_reversed_at_more_flops_does_not_persist(place: Path) -> None:
    assert end(BY_NAME["-100% persists of 3.0%"], 0, place).no_go == "does_not_persist"


@pytest.mark.parametrize(
    "name",
    [
        "a machine that slows down, 5.0%",
        "a device that fails, 5.0%",
        "NaNs around the optimum, 5.0%",
        "nothing, noise 0.5%, outliers",
    ],
)
def test_each_trouble_fires_its_own_rule_only(place: Path, name: str) -> None:
    trial = BY_NAME[name]
    found = end(trial, SEED, place)
    assert all(p.happens(found) for p in trial.promises if p.least >= 0.9)


def test_the_interval_of_a_rate_is_exact() -> None:
    assert rate_interval(1, 100) == pytest.approx((0.00025, 0.0545), abs=1e-4)
    assert rate_interval(0, 380) == pytest.approx((0, 0.0097), abs=1e-4)
