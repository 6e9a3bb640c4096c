"""What a search takes, evaluation by evaluation, and what must be free for it."""

from collections.abc import Callable
from typing import Any

import pytest

from budgets.plan import Calibration, Devices, Plan
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.forecast import Forecast, detectable_gain, forecast_of, work_of
from orchestrator.plan.resolve import search_plan
from tests.asking import config_for

Calibrated = Callable[..., Calibration]
pytestmark = pytest.mark.usefixtures("no_overheads")

MINUTE = Calibration(assumed_seconds=60.0)
ALONE: dict[str, Any] = {"confirm_seeds": 0}


def plan(devices: int = 1, **more: Any) -> Plan:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    offered = Devices(count=devices, kind="cpu", name="x", threads=1, memory_bytes=1 << 30)
    return search_plan(config_for("phase1", "target", objective, **more), offered, MINUTE)


def taken(own: Plan, calibration: Calibration = MINUTE, *, calibrates: bool = False) -> Forecast:
    own = own.model_copy(update={"calibration": calibration})
    found = forecast_of(own, calibrates=calibrates)
    assert found is not None
    return found


def test_the_reference_panel_fills_what_generations_leave_idle() -> None:
    """8 x 15 on 3 devices: 15 x 3 rounds, one slot idle in each generation, for 11 evaluations;
    then 12 finalists and 8 of the winner in 4 and 3 rounds."""
    own = plan(3, population=8, long_run=0.0)
    assert len(work_of(own)["reference"]) == 11
    assert 60 * taken(own).hours_p50 == pytest.approx(45 + 4 + 3)


def test_the_long_run_is_counted_apart() -> None:
    """4 evaluations, each four times as long, on 2 devices."""
    found = taken(plan(2))
    assert 60 * found.long_run_hours_p50 == pytest.approx(8)
    assert taken(plan(2, long_run=0.0)).hours_p50 == found.hours_p50


def test_waiting_for_the_slowest_costs_more_than_the_mean(calibrated: Calibrated) -> None:
    uneven = calibrated((1.0,) * 6, (50.0, 55.0, 58.0, 62.0, 66.0, 72.0))
    found, even = taken(plan(8, **ALONE), uneven), taken(plan(8, **ALONE))
    assert found.hours_p50 > 1.1 * even.hours_p50
    assert found.hours_p50 < found.hours_p90 < found.hours_free
    assert found == taken(plan(8, **ALONE), uneven), "equal plans, equal figures"


def test_what_is_not_measured_is_calibrated_first() -> None:
    """8 evaluations on 4 devices: two rounds before the search; a stated time is not measured."""
    own = plan(4, **ALONE)
    word, first = taken(own), taken(own, calibrates=True)
    assert 60 * (first.hours_p50 - word.hours_p50) == pytest.approx(2)
    assert 60 * (first.device_hours_free - word.device_hours_free) == pytest.approx(8)


def test_last_attempts_limits_and_the_long_run_must_be_free_too() -> None:
    """8 x 15 on 4 devices; 11, 12 and 8 evaluations of the verdict; limits of 5 minutes."""
    alone = taken(plan(4, limit_seconds=290.0, **ALONE))
    assert 60 * alone.hours_free == pytest.approx(30 + 4)
    whole = taken(plan(4, limit_seconds=290.0))
    assert 60 * whole.hours_free == pytest.approx(30 + 8 + 4 + 4 + 5)
    assert 60 * whole.device_hours_free == pytest.approx(120 + 31 + 16 + 4 + 5)


def test_without_a_time_there_is_no_forecast() -> None:
    assert forecast_of(plan().model_copy(update={"calibration": None})) is None


@pytest.mark.parametrize(
    ("scores", "least"),
    [((1.00, 1.01, 0.99), 0.0198), ((1.0, 1.0), 0.0), ((0.1, 0.2, -0.3), None), ((1.0,), None)],
)
def test_the_noise_says_what_gain_a_verdict_would_see(
    calibrated: Calibrated, scores: tuple[float, ...], least: float | None
) -> None:
    found = detectable_gain(plan(8).model_copy(update={"calibration": calibrated(scores)}))
    assert (None if found is None else round(found, 4)) == least
