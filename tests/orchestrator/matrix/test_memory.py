"""The largest micro-batch that is safe, from the peaks of a few."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.matrix.checks import Memory, with_micro_batch
from orchestrator.plan.times import find_calibration

if TYPE_CHECKING:
    from tests.conftest import Command

GB = 1e9


def nanochat(**settings: Any) -> Objective:
    return registry.load(ObjectiveSpec(name="nanochat", settings=settings))


@pytest.mark.parametrize(
    ("base", "each", "there", "largest"),
    [
        (0.0, 2.4, 80, 16),
        (0.0, 3.5, 80, 16),  # 16.0 of them
        (0.0, 3.501, 80, 8),
        (20.0, 1.0, 80, 32),  # 36 of (56 - 20)
        (20.0, 1.0, 25, 0),
        (21.0, 0.0, 80, None),
    ],
)
def test_the_largest_is_a_power_of_two_within_seven_tenths(
    base: float, each: float, there: float, largest: int | None
) -> None:
    peaks = {size: (base + each * size) * GB for size in (1, 4)}
    found = Memory(peaks, {1: 2.0, 4: 3.0}, base * GB, each * GB, 0.7, there * GB)
    assert found.largest == largest


@pytest.mark.parametrize(
    ("objective", "size", "said"),
    [
        (nanochat(micro_batch_size=4), 3, r"divide the effective batch of 4, got 3"),
        (registry.load(ObjectiveSpec(name="sphere")), 1, "sphere has no micro-batches"),
    ],
)
def test_a_size_that_cannot_be_is_refused(objective: Objective, size: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        with_micro_batch(objective, size)


def test_two_sizes_are_measured_on_record_and_planned_with_by_nobody(
    command: "Command", tmp_path: Path
) -> None:
    settings = ("target_flops=5e8", "val_windows=20", "n_embd=8", "micro_batch_size=4")
    small = [part for one in (*settings, "n_layer=1") for part in ("--set", one)]
    how = ("--executor", "inline", "--workers", "1", "--seeds", "1", "--json")
    answer = command("check", "memory", *small, *how, "--size", "1", "--size", "4")
    assert answer.code == 0, answer.err
    found = orjson.loads(answer.out)
    assert set(found["peak_bytes"]) == set(found["seconds"]) == {"1", "4"}
    root = tmp_path / "artifacts/cmaes"
    names = sorted(path.name for path in (root / "calibration").iterdir())
    assert len(names) == 2
    assert all(name.startswith("memory-nanochat-") for name in names)
    same = nanochat(target_flops=5e8, val_windows=20, n_embd=8, micro_batch_size=4, n_layer=1)
    here = devices_of(Engine("inline", workers=1).slots())
    assert find_calibration(root, same, here) is None
