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
    typical: dict[str, Any] = {
        "samples": 8,
        "seconds": 10.0,
        "startup_seconds": 1.0,
        "train_flops": 8e9,
        "eval_flops": 1e9,
        "peak_memory_bytes": 1000,
        "memory_bytes": 80_000,
    }
    evaluation = fields.pop("evaluation", {})
    values = {
        "run_id": "earlier",
        "phase": "phase1",
        "genesis": "g" * 32,
        "head": "h" * 32,
        "ended_at": datetime(2030, 1, 1, tzinfo=UTC),
        "objective": "sphere",
        "fingerprint": "f" * 64,
        "settings": {},
        "device_kind": "cpu",
        "device_name": "some processor",
        "threads": 1,
        "devices": 2,
        "attempts": 16,
        "timeouts": 0,
        "evaluation": None if evaluation is None else Typical(**{**typical, **evaluation}),
        "overheads": {},
        **fields,
    }
    return Entry.model_validate(values)


@pytest.fixture(scope="session")
def make_entry() -> MakeEntry:
    return entry


@pytest.fixture(scope="session")
def calibrated() -> Calibrated:
    """`calibrated(scores, seconds, failed=0)`: one sample each; seconds default to 2, 3, 4, ..."""

    def make(
        scores: tuple[float, ...], seconds: tuple[float, ...] = (), failed: int = 0
    ) -> Calibration:
        taken = seconds or tuple(2.0 + n for n in range(len(scores)))
        zeros = dict.fromkeys(Sample.model_fields, 0)
        samples = (
            Sample(**{**zeros, "seed": n, "score": score, "seconds": own, "startup_seconds": 0.5})
            for n, (score, own) in enumerate(zip(scores, taken, strict=True), 1)
        )
        return Calibration(samples=tuple(samples), failed=failed)

    return make
