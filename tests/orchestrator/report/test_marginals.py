"""What the paid evaluations say of each knob."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from orchestrator.analysis.sensitivity import estimate_of
from orchestrator.records.recorded import Result, load_state
from orchestrator.report.marginals import LEAST_IN_A_BIN, MOST_BINS, marginals
from orchestrator.report.model import Marginal


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]
) -> tuple[Marginal, ...]:
    """Of a search of 64 candidates in two knobs."""
    directory = run_search(
        tmp_path_factory.mktemp("long"),
        settings={"dimension": 2, "noise": 0.01, "failure_rate": 0.05},
        tier="target",
        population=16,
        max_evals=64,
        assumed_seconds=1.0,
        thresholds={"crash_count_pause": 20},
    ).directory
    return marginals(load_state(directory))


def test_every_knob_has_the_same_candidates(found: tuple[Marginal, ...]) -> None:
    assert [one.knob for one in found] == ["x0", "x1"]
    assert found[0].excess == found[1].excess
    assert len(found[0].units) == len(found[0].excess) > 50


def test_a_generations_excesses_are_0_on_average(finished_run: Path) -> None:
    state = load_state(finished_run)
    (one, *_) = marginals(state)

    healthy = [sum(score is not None for score in g.scores()) for g in state.told]
    assert fmean(one.excess[: healthy[0]]) == pytest.approx(0, abs=1e-12)
    assert fmean(one.excess[healthy[0] :]) == pytest.approx(0, abs=1e-12)


def test_bins_are_equally_full_and_rise(found: tuple[Marginal, ...]) -> None:
    for one in found:
        assert len(one.bin_units) == len(one.bin_means) == len(one.bin_errors) == MOST_BINS
        assert list(one.bin_units) == sorted(one.bin_units)
        assert fmean(one.bin_means) == pytest.approx(fmean(one.excess), abs=0.02)
        assert all(error > 0 for error in one.bin_errors)


def test_of_few_candidates_there_are_fewer_bins(finished_run: Path) -> None:
    (one, *_) = marginals(load_state(finished_run))

    assert len(one.bin_units) == len(one.units) // LEAST_IN_A_BIN == 3


def test_the_slope_is_the_regressions(finished_run: Path) -> None:
    state = load_state(finished_run)
    expected = estimate_of(state)

    for one in marginals(state):
        if expected is None:
            assert one.stands is None
        else:
            (known,) = [k for k in expected.knobs if k.knob == one.knob]
            assert one.slope == known.slope.value


def test_with_enough_candidates_each_knob_has_a_slope(found: tuple[Marginal, ...]) -> None:
    assert all(one.slope is not None and one.slope_error is not None for one in found)
    assert {one.stands for one in found} <= {True, False}


def test_a_calibration_has_no_marginals(finished_run: Path) -> None:
    (directory,) = (finished_run.parents[1] / "calibration").iterdir()

    assert marginals(load_state(directory)) == ()
