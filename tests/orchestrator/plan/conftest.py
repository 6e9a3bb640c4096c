"""Calibrations to plan with."""

from collections.abc import Callable

import pytest

from budgets.plan import Calibration, Sample
from orchestrator.plan import forecast

Calibrated = Callable[..., Calibration]


@pytest.fixture(scope="session")
def calibrated() -> Calibrated:
    """`calibrated(scores, seconds)`: one sample each; seconds default to 2, 3, 4, ..."""

    def make(scores: tuple[float, ...], seconds: tuple[float, ...] = ()) -> Calibration:
        taken = seconds or tuple(2.0 + n for n in range(len(scores)))
        zeros = dict.fromkeys(Sample.model_fields, 0)
        samples = (
            Sample(**{**zeros, "seed": n, "score": score, "seconds": own, "startup_seconds": 0.5})
            for n, (score, own) in enumerate(zip(scores, taken, strict=True), 1)
        )
        return Calibration(samples=tuple(samples))

    return make


@pytest.fixture
def no_overheads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forecast counts evaluations alone."""
    monkeypatch.setattr(forecast, "STARTUP_SECONDS", 0.0)
    monkeypatch.setattr(forecast, "GAP_SECONDS", 0.0)
