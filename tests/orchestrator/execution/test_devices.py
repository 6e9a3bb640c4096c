"""The devices of a machine, and GPUs that other processes use, as nvidia-smi shows them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from orchestrator.execution import local
from orchestrator.execution.api import Attempt, EngineError
from orchestrator.execution.devices import (
    Engine,
    cpu_name,
    make_devices,
    offer,
    resized,
    usable_cpus,
    visible_gpus,
)
from orchestrator.execution.local import LocalExecutor
from tests.orchestrator.execution.conftest import NASTY, the_one

Make = Callable[..., Attempt]
Driver = Callable[..., None]
GPUS = ["GPU-a", "GPU-b"]
TWO = make_devices(2, "cuda", "a GPU")
GONE = "is not used any more"


# What there is


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        (None, GPUS),
        ("", []),
        ("-1", []),
        ("1", ["1"]),
        ("1,0", ["1", "0"]),
        ("0,7,1", ["0"]),
        ("GPU-b", ["GPU-b"]),
    ],
)
def test_visible_gpus_follow_the_environment(
    driver: Driver, visible: str | None, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert list(visible_gpus()) == ids


def test_gpus_are_preferred_and_share_the_cpus(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cpus = usable_cpus()
    threads = max(1, cpus // 2)
    assert Engine("local").slots() == make_devices(2, "cuda", "NVIDIA H200", threads)
    monkeypatch.setenv("PATH", str(tmp_path))  # without a driver
    assert Engine("local").slots() == make_devices(cpus, "cpu", cpu_name())
    seven = offer(7, 0, "")
    assert Engine("local", threads=2).slots(seven) == make_devices(3, "cpu", cpu_name(), 2)


@pytest.mark.parametrize(
    ("device", "count", "threads", "expected"),
    [("cpu", 4, 2, 2), ("cpu", 3, 8, 1), ("cpu", 2, 1, 2), ("cuda", 2, 8, 2)],
)
def test_slots_with_more_threads_need_no_more_cpus(
    device: Any, count: int, threads: int, expected: int
) -> None:
    slots = resized(make_devices(count, device), threads=threads)
    assert (slots.count, slots.threads) == (expected, threads)


@pytest.mark.parametrize(("device", "count"), [("cuda", 3), ("cpu", 9)])
def test_more_than_there_is_is_refused(device: Any, count: int) -> None:
    with pytest.raises(ValueError, match="asked for"):
        Engine("local", device=device, workers=count).slots(offer(8, 2, "x"))


# What is free of it


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is in use is not waited for."""
    monkeypatch.setattr(local, "RELEASE_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("used", "free", "warning"),
    [
        ((600, 1024), GPUS, ""),  # which a driver keeps for itself
        (("[N/A]", "-"), GPUS, ""),
        ((30_000, 4), ["GPU-b"], f"GPU-a {GONE}: 30000 MiB of it are in use"),
    ],
)
@pytest.mark.usefixtures("_at_once")
def test_a_gpu_in_use_is_named_and_the_others_are_handed_out(
    used: tuple[object, object],
    free: list[str],
    warning: str,
    driver: Driver,
) -> None:
    driver(*used)
    pool = LocalExecutor(TWO)
    assert pool.free() == len(free)
    assert pool._free == free
    assert [w.startswith(warning) for w in pool.warnings] == [True] * bool(warning)


@pytest.mark.usefixtures("_at_once")
def test_with_no_device_left_all_are_listed(driver: Driver) -> None:
    driver(9000, 8000)
    with pytest.raises(EngineError, match=r"GPU-a is.* 9000 MiB.*GPU-b is.* 8000 MiB"):
        LocalExecutor(TWO).free()


@pytest.mark.parametrize("fails", [False, True])
def test_a_gpu_whose_memory_is_freed_in_time_is_used(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Also if nvidia-smi fails meanwhile."""
    driver(9000)
    pool = LocalExecutor(make_devices(1, "cuda"))
    assert pool.free() == 0
    driver(4)
    if fails:
        monkeypatch.setattr(local, "visible_gpus", dict)
    assert (pool.free(), pool.warnings) == (1, ())


BROKEN = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"


@pytest.mark.parametrize(
    ("status", "cause", "used", "warning"),
    [
        ("oom", "CUDA out of memory", 4, ""),
        ("error", "ValueError", 9000, "9000 MiB of it are in use"),
        ("error", BROKEN, 4, f"the device or its driver failed: {BROKEN}"),
    ],
)
@pytest.mark.usefixtures("_at_once")
def test_an_executor_withdraws_a_device_that_fails_or_was_left_in_use(
    status: str,
    cause: str,
    used: int,
    warning: str,
    driver: Driver,
    make_attempt: Make,
) -> None:
    said = f'{{"attempt_id": "ID", "status": "{status}", "cause": "{cause}"}}'
    with LocalExecutor(TWO, NASTY) as executor:
        assert executor.free() == 2
        executor.submit(make_attempt("write", content=said))
        outcome = the_one(executor.wait(20.0))
        assert (outcome.status, outcome.device) == (Status(status), "GPU-a")
        driver(used)
        assert executor.free() == (1 if warning else 2)
        executor.submit(attempt := make_attempt("facts"))
        outcome = the_one(executor.wait(20.0))
        assert (outcome.status, outcome.device) == (Status.OK, "GPU-b")
        facts = (attempt.directory / "facts.json").read_text()
        assert '"CUDA_VISIBLE_DEVICES": "GPU-b"' in facts
    assert executor.warnings == ((f"GPU-a {GONE}: {warning}",) if warning else ())
