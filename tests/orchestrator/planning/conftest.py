"""Calibrations to plan with."""

from collections.abc import Callable

import pytest

from budgets.terms import Calibration, Sample

Calibrated = Callable[..., Calibration]


@pytest.fixture(scope="session")
def calibrated() -> Calibrated:
    """`calibrated(scores, seconds, failed=0)`: one sample each; seconds default to 2, 3, 4, ..."""

    def make(
        scores: tuple[float, ...], seconds: tuple[float, ...] = (), failed: int = 0
    ) -> Calibration:
        taken = seconds or tuple(2.0 + n for n in range(len(scores)))
        samples = (
            Sample(
                seed=n + 1,
                score=score,
                seconds=own,
                startup_seconds=0.5,
                train_seconds=own - 0.5,
                cpu_seconds=own,
                peak_memory_bytes=1 << 20,
                steps=0,
                tokens=0,
                train_flops=0.0,
                eval_flops=0.0,
            )
            for n, (score, own) in enumerate(zip(scores, taken, strict=True))
        )
        return Calibration(samples=tuple(samples), failed=failed)

    return make
