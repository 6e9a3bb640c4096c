"""What a checklist answers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from budgets.plan import Calibration, Devices, Window
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan import checks
from orchestrator.plan.checks import Item, checklist
from orchestrator.plan.forecast import forecast_of
from orchestrator.plan.history import Known
from orchestrator.plan.resolve import search_plan
from orchestrator.plan.times import NOTHING, Disk, Times
from tests.asking import config_for
from tests.orchestrator.plan.conftest import entry

Calibrated = Callable[..., Calibration]
DEVICES = Devices(count=8, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ALIVE = Known(tuple(f"x{place}" for place in range(10)), (), ())
UNTRIED = Known((), (), ALIVE.alive)
ROOMY = Disk(10**6, 0, measured=True, free=10**12)
NAMES = ("purpose", "limit", "parallel", "pilot", "wall", "knobs", "caps", "disk")


def items(times: Times, known: Known = ALIVE, **fields: Any) -> dict[str, Item]:
    """Of tier target of a sphere on 8 devices; by what the question is about."""
    config = config_for("phase1", "target", registry.load(ObjectiveSpec(name="sphere")), **fields)
    plan = search_plan(config, DEVICES, times.calibration)
    found = checklist(plan, times, forecast_of(plan, times), ROOMY, known, NOW)
    return dict(zip(NAMES, found, strict=True))


@pytest.fixture
def measured(calibrated: Calibrated) -> Callable[..., Times]:
    def make(scores: tuple[float, ...] = (3.00, 3.02, 3.04), **more: Any) -> Times:
        seconds = tuple(3.0 + place / 10 for place in range(len(scores)))
        facts = {"overheads": NOTHING, "measured_at": NOW - timedelta(days=2), "attempts": 24}
        return Times("measured", calibrated(scores, seconds), **{**facts, **more})

    return make


def test_a_run_of_a_measured_objective_within_its_window_passes(
    measured: Callable[..., Times],
) -> None:
    found = items(measured(), window=Window(hours=2.0))
    assert {item.verdict for item in found.values()} == {"pass"}


def test_what_nobody_knows_is_unknown_and_never_passed() -> None:
    found = items(Times(), UNTRIED, max_device_hours=1.0)
    unknown = {name for name, item in found.items() if item.verdict == "unknown"}
    assert unknown == {"limit", "pilot", "wall", "knobs", "caps"}


@pytest.mark.parametrize(
    ("about", "facts", "fields", "verdict"),
    [
        ("limit", {"timeouts": 3}, {}, "fail"),
        ("limit", {"timeouts": 1}, {}, "pass"),
        ("limit", {}, {"limit_seconds": 3.1}, "fail"),
        ("pilot", {"scores": (3.0, 3.1)}, {}, "fail"),
        ("pilot", {"latest": entry(evaluation={"seconds": 3.7})}, {}, "fail"),
        ("pilot", {"latest": entry(evaluation={"seconds": 2.9})}, {}, "pass"),
        ("pilot", {"measured_at": NOW - timedelta(days=31)}, {}, "unknown"),
        ("parallel", {}, {"population": 4}, "fail"),
        ("wall", {}, {}, "unknown"),
        ("wall", {}, {"max_hours": 0.02}, "fail"),
        ("wall", {}, {"max_hours": 1.0}, "pass"),
        ("wall", {}, {"window": Window(until=NOW + timedelta(minutes=32))}, "fail"),
        ("wall", {}, {"window": Window(until=NOW - timedelta(hours=1))}, "fail"),
        ("caps", {}, {"max_device_hours": 0.05}, "fail"),
        ("caps", {}, {"max_device_hours": 1.0}, "pass"),
        ("caps", {}, {"max_cost": 0.1, "price_per_device_hour": 2.0}, "fail"),
        ("purpose", {}, {"confirm_seeds": 0}, "pass"),
    ],
)
def test_what_was_measured_and_asked_for_decides(
    measured: Callable[..., Times],
    about: str,
    facts: dict[str, Any],
    fields: dict[str, Any],
    verdict: str,
) -> None:
    assert items(measured(**facts), **fields)[about].verdict == verdict


@pytest.mark.parametrize(
    ("item", "verdict"),
    [
        (checks.pilot(Times("assumed", Calibration(assumed_seconds=3.0)), NOW), "fail"),
        (checks.parallel(8, 9, None), "fail"),
        (checks.parallel(8, 8, 0.36), "fail"),
        (checks.parallel(8, 5, None), "pass"),
        (checks.parallel(9, 8, None), "fail"),
        (checks.knobs(Known(("a", "b"), ("c",), ())), "fail"),
        (checks.knobs(Known(("a", "b"), (), ("c",))), "unknown"),
        (checks.disk(Disk(10**6, 0, measured=True, free=10**5)), "fail"),
        (checks.disk(Disk(10**6, 0, measured=False, free=None)), "unknown"),
    ],
)
def test_each_question_has_its_limits(item: Item, verdict: str) -> None:
    assert item.verdict == verdict
