"""What a checklist answers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from budgets.plan import Calibration, Devices, Window
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.forecast import Times, forecast_of
from orchestrator.plan.page import checklist
from orchestrator.plan.resolve import search_plan
from tests.asking import config_for

Calibrated = Callable[..., Calibration]
DEVICES = Devices(count=8, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
KNOBS = tuple(f"x{place}" for place in range(10))
ALIVE = dict.fromkeys(KNOBS, "alive")
NAMES = ("purpose", "limit", "parallel", "pilot", "wall", "caps", "knobs")


def verdicts(times: Times, known: dict[str, str] = ALIVE, **fields: Any) -> dict[str, str]:
    """Of tier target of a sphere on 8 devices; by what the question is about."""
    config = config_for("phase1", "target", registry.load(ObjectiveSpec(name="sphere")), **fields)
    plan = search_plan(config, DEVICES, times.calibration)
    found = checklist(plan, times, forecast_of(plan), NOW, known)
    return {name: item.verdict for name, item in zip(NAMES, found, strict=True)}


@pytest.fixture
def measured(calibrated: Calibrated) -> Callable[..., Times]:
    def make(scores: tuple[float, ...] = (3.00, 3.02, 3.04), **more: Any) -> Times:
        seconds = tuple(3.0 + place / 10 for place in range(len(scores)))
        return Times(calibrated(scores, seconds), **more)

    return make


def test_a_run_of_a_measured_objective_within_its_window_passes(
    measured: Callable[..., Times],
) -> None:
    assert set(verdicts(measured(), window=Window(hours=2.0)).values()) == {"pass"}


def test_what_nobody_knows_is_unknown_and_never_passed() -> None:
    found = verdicts(Times(), dict.fromkeys(KNOBS, "unknown"), max_device_hours=1.0)
    unknown = {name for name, verdict in found.items() if verdict == "unknown"}
    assert unknown == {"limit", "pilot", "wall", "knobs", "caps"}


@pytest.mark.parametrize(
    ("about", "facts", "fields", "verdict"),
    [
        ("limit", {"timeouts": 0.06}, {}, "fail"),
        ("limit", {"timeouts": 0.04}, {}, "pass"),
        ("limit", {}, {"limit_seconds": 3.1}, "fail"),
        ("pilot", {"scores": (3.0, 3.1)}, {}, "fail"),
        ("parallel", {}, {"population": 4}, "fail"),
        ("wall", {}, {}, "unknown"),
        ("wall", {}, {"max_hours": 0.02}, "fail"),
        ("wall", {}, {"window": Window(until=NOW + timedelta(minutes=32))}, "fail"),
        ("caps", {}, {"max_device_hours": 1.0}, "pass"),
        ("caps", {}, {"max_cost": 0.1, "price_per_device_hour": 2.0}, "fail"),
        ("knobs", {}, {"known": {**ALIVE, "x8": "dead"}}, "fail"),
    ],
)
def test_what_was_measured_and_asked_for_decides(
    measured: Callable[..., Times],
    about: str,
    facts: dict[str, Any],
    fields: dict[str, Any],
    verdict: str,
) -> None:
    assert verdicts(measured(**facts), **fields)[about] == verdict
