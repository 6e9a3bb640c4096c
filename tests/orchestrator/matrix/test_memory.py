"""The largest micro-batch that is safe, from the peaks of a few."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.plan import Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.execution.engine import Engine, devices_of
from orchestrator.matrix.memory import (
    measured_peaks,
    memory_line,
    memory_of,
    with_micro_batch,
)
from orchestrator.plan.history import find_calibration
from tests.orchestrator.plan.conftest import entry

if TYPE_CHECKING:
    from tests.conftest import Command

GB = 1e9
DEVICES = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)


def nanochat(**settings: Any) -> Objective:
    return registry.load(ObjectiveSpec(name="nanochat", settings=settings))


@pytest.mark.parametrize(("peak", "largest"), [(2.4 * GB, 16), (6 * GB, 8)])
def test_from_one_size_the_peak_grows_from_nothing(peak: float, largest: int) -> None:
    """80 GB: 33 and 13 times 0.6, in powers of two."""
    line = memory_line({1: peak})
    assert line.safe_share == 0.6
    assert line.largest(80 * GB) == largest


@pytest.mark.parametrize(
    ("each", "largest"), [(2.4 * GB, 16), (6 * GB, 8), (3.5 * GB, 16), (3.501 * GB, 8)]
)
def test_from_two_sizes_seven_tenths_may_be_used(each: float, largest: int) -> None:
    line = memory_line({1: each, 4: 4 * each})
    assert line.safe_share == 0.7
    assert line.largest(80 * GB) == largest


def test_what_every_batch_takes_is_taken_off_first() -> None:
    line = memory_line({1: 21 * GB, 4: 24 * GB})
    assert line.base_bytes == pytest.approx(20 * GB)
    assert line.bytes_each == pytest.approx(GB)
    assert line.peak_bytes(8) == pytest.approx(28 * GB)
    assert line.largest(80 * GB) == 32  # 36 of (56 - 20)


def test_where_not_even_one_is_safe_there_is_none() -> None:
    assert memory_line({1: 21 * GB, 4: 24 * GB}).largest(25 * GB) == 0


def test_sizes_that_take_the_same_say_nothing() -> None:
    with pytest.raises(ValueError, match="1 and 4 take the same memory"):
        memory_line({1: 21 * GB, 4: 21 * GB}).largest(80 * GB)


def test_without_a_peak_there_is_no_line() -> None:
    with pytest.raises(ValueError, match="check memory --sizes 1,4 measures"):
        memory_line({})


def ran(objective: Objective, peak: int, **fields: Any) -> Any:
    settings = objective.spec.settings
    return entry(
        objective="nanochat",
        settings=settings,
        micro_batch_size=settings["micro_batch_size"],
        evaluation={"peak_memory_bytes": peak, "memory_bytes": 800},
        **fields,
    )


def test_peaks_are_those_of_the_same_model_however_long_it_was_trained() -> None:
    history = [
        ran(nanochat(micro_batch_size=1, gradient_accumulation_steps=4), 100),
        ran(nanochat(micro_batch_size=4), 250),
        ran(nanochat(micro_batch_size=4, target_flops=9e10), 240),
        ran(nanochat(micro_batch_size=2, n_embd=64), 900),
        ran(nanochat(micro_batch_size=2), 900, device_name="another"),
    ]
    assert measured_peaks(history, nanochat(), DEVICES) == ({1: 100, 4: 250}, 800)


def test_the_effective_batch_stays() -> None:
    one = with_micro_batch(nanochat(micro_batch_size=4), 1).spec.settings
    assert (one["micro_batch_size"], one["gradient_accumulation_steps"]) == (1, 4)


@pytest.mark.parametrize(
    ("objective", "size", "said"),
    [
        (nanochat(micro_batch_size=4), 3, r"divide the effective batch of 4 \(1, 2, 4\), got 3"),
        (registry.load(ObjectiveSpec(name="sphere")), 1, "sphere has no micro-batches"),
    ],
)
def test_a_size_that_cannot_be_is_refused(objective: Objective, size: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        with_micro_batch(objective, size)


def test_a_batch_that_fits_whole_is_said_to() -> None:
    objective = nanochat(micro_batch_size=4)
    entries = [
        ran(with_micro_batch(objective, 1), 100),
        ran(objective, 130),
    ]
    found = memory_of(objective, DEVICES, entries, {1: 2.0})
    assert found.largest == 32  # (560 - 90) / 10
    text = found.to_markdown()
    assert "The largest safe micro-batch is 32. The effective batch is 4: all of it fits" in text


def test_two_sizes_are_measured_on_record_and_planned_with_by_nobody(
    command: "Command", tmp_path: Path
) -> None:
    settings = ("target_flops=5e8", "val_windows=20", "n_embd=8", "micro_batch_size=4")
    small = [part for one in (*settings, "n_layer=1") for part in ("--set", one)]
    how = ("--executor", "inline", "--workers", "1", "--seeds", "1", "--json")
    answer = command("check", "memory", *small, *how, "--sizes", "1,4")
    assert answer.code == 0, answer.err
    found = orjson.loads(answer.out)
    assert set(found["peak_bytes"]) == set(found["seconds"]) == {"1", "4"}
    assert found["effective_batch"] == 4
    root = tmp_path / "artifacts/cmaes"
    names = sorted(path.name for path in (root / "calibration").iterdir())
    assert len(names) == 2
    assert all(name.startswith("memory-nanochat-") for name in names)
    same = nanochat(target_flops=5e8, val_windows=20, n_embd=8, micro_batch_size=4, n_layer=1)
    here = devices_of(Engine("inline", workers=1).slots())
    assert find_calibration(root, same, here) is None
