"""Calibrations and entries of a history, and what is planned with them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest

from budgets.plan import Calibration, Sample
from orchestrator.plan.history import Entry, Typical

Calibrated = Callable[..., Calibration]


class MakeEntry(Protocol):
    def __call__(self, **fields: Any) -> Entry: ...


def entry(**fields: Any) -> Entry:
    """Of a sphere on two CPU slots: 10 s an evaluation, of it 1 s start-up, 9e9 FLOPs."""
    typical = {
        "samples": 8,
        "seconds": 10.0,
        "startup_seconds": 1.0,
        "cpu_seconds": 9.0,
        "steps": 100,
        "tokens": 38400,
        "train_flops": 8e9,
        "eval_flops": 1e9,
        "tokens_per_second": 4000.0,
        "peak_memory_bytes": 1000,
        "memory_bytes": 80_000,
    }
    evaluation = fields.pop("evaluation", {})
    values = {
        "run_id": "earlier",
        "phase": "phase1",
        "tier": "min",
        "genesis": "g" * 32,
        "head": "h" * 32,
        "ended_at": datetime(2030, 1, 1, tzinfo=UTC),
        "decision": "done",
        "objective": "sphere",
        "fingerprint": "f" * 64,
        "settings": {},
        "micro_batch_size": None,
        "device_kind": "cpu",
        "device_name": "some processor",
        "threads": 1,
        "devices": 2,
        "evaluations": 16,
        "evaluations_planned": 16,
        "evaluation": None if evaluation is None else Typical(**{**typical, **evaluation}),
        "startup_seconds": 7.2,
        "idle_device_hours": 0.0,
        **fields,
    }
    return Entry.model_validate(values)


@pytest.fixture(scope="session")
def make_entry() -> MakeEntry:
    return entry


@pytest.fixture(scope="session")
def make_prior() -> Any:
    """`make_prior(factor)`: an earlier run of the same objective, by so many times its FLOPs."""
    from orchestrator.plan.history import Prior

    return lambda factor: Prior(entry(), "the same objective", factor, is_assumed=False)


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
