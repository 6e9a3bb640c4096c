"""What a machine offers, and GPUs that are not really free, by what nvidia-smi says."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from budgets.events import Status
from orchestrator.execution.api import Attempt, EngineError, Slots
from orchestrator.execution.devices import (
    DevicePool,
    Gpu,
    Offer,
    local_offer,
    look_at_gpus,
    usable_cpus,
    visible_gpus,
)
from orchestrator.execution.local import LocalExecutor
from tests.orchestrator.execution.conftest import answer_as_driver

Make = Callable[..., Attempt]
GPUS = ["GPU-a", "GPU-b"]


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's program that reports two devices."""
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\necho '0, GPU-aaa, NVIDIA H200'\necho '1, GPU-bbb, NVIDIA H200'\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        (None, ["GPU-aaa", "GPU-bbb"]),
        ("", []),
        ("-1", []),
        ("1", ["1"]),
        ("1,0", ["1", "0"]),
        ("0,7,1", ["0"]),
        ("GPU-b", ["GPU-b"]),
    ],
)
def test_visible_gpus_follow_the_environment(
    two_gpus: None, visible: str | None, ids: list[str]
) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert [gpu for gpu, _ in visible_gpus(environment)] == ids


def test_gpus_are_preferred_and_share_the_cpus(two_gpus: None) -> None:
    offer = local_offer({})
    assert (offer.gpus, offer.gpu_name) == (2, "NVIDIA H200")
    threads = max(1, usable_cpus() // 2)
    assert offer.slots() == Slots(2, "cuda", "NVIDIA H200", threads)


def test_without_a_driver_there_are_only_cpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    offer = local_offer({})
    assert offer.gpus == 0
    assert offer.slots() == Slots(usable_cpus(), "cpu", offer.cpu_name, 1)


@pytest.mark.parametrize(("device", "count"), [("cuda", 3), ("cpu", 9), ("cuda", 0)])
def test_more_than_there_is_or_nothing_at_all_is_refused(device: str, count: int) -> None:
    with pytest.raises(ValueError, match=r"asked for|at least one"):
        Offer(cpus=8, cpu_name="x", gpus=2).slots(device, count)  # type: ignore[arg-type]


class Driver:
    """What nvidia-smi will say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.says()

    def says(self, used: tuple[object, object] = (4, 4), apps: str = "") -> None:
        rows = [
            f"{index}, {gpu}, {mib}"
            for index, (gpu, mib) in enumerate(zip(GPUS, used, strict=True))
        ]
        (self._folder / "memory").write_text("\n".join(rows) + "\n")
        (self._folder / "apps").write_text(apps)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    folder = tmp_path / "driver"
    folder.mkdir()
    answer_as_driver(folder, monkeypatch)
    return Driver(folder)


def pool() -> DevicePool:
    return DevicePool(GPUS, release_seconds=0.0)


def test_a_device_with_a_foreign_process_is_named_and_the_others_are_used(driver: Driver) -> None:
    driver.says((30_000, 4), "GPU-a, 1, 29996\n")
    devices = pool()
    assert len(devices.free()) == 1
    assert devices.take() == "GPU-b"
    (gone,) = devices.warnings
    assert gone.startswith("GPU-a is not used any more: used by process 1 (")
    assert gone.endswith("30000 MiB in all")


def test_memory_that_is_given_back_in_time_is_waited_for() -> None:
    answers: Iterator[int] = iter([9000, 9000, 9000, 4])

    def look() -> list[Gpu]:
        return [Gpu("0", "GPU-a", next(answers), ())]

    devices = DevicePool(["GPU-a"], "", 60.0, look)
    assert devices.free() == []
    assert devices.free() == ["GPU-a"]
    assert devices.warnings == ()


def test_devices_are_also_known_by_their_number(driver: Driver) -> None:
    driver.says((4, 9000))
    devices = DevicePool(["0", "1"], release_seconds=0.0)
    assert len(devices.free()) == 1
    assert [one.split()[0] for one in devices.warnings] == ["1"]


@pytest.mark.parametrize("said", ["[N/A]", "", "-"])
def test_what_the_driver_cannot_say_is_no_reason_to_doubt(driver: Driver, said: str) -> None:
    driver.says((said, said), "GPU-a, [N/A]\n")
    assert look_at_gpus() == []
    assert len(pool().free()) == 2


def test_an_executor_withdraws_a_device_that_a_failed_attempt_left_in_use(
    driver: Driver, make_attempt: Make, nasty: str
) -> None:
    slots = Slots(2, "cuda", "a GPU", 1)
    with LocalExecutor(slots, entry=nasty, gpu_ids=GPUS, release_seconds=0.2) as executor:
        executor.submit(make_attempt("exit_with_3"))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.ERROR, "GPU-a")
        driver.says((9000, 4))
        executor.submit(make_attempt("finish"))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.OK, "GPU-b")
        driver.says((9000, 9000))
        assert executor.free() == 1
        executor.submit(make_attempt("exit_with_3"))
        executor.wait(20.0)
        with pytest.raises(EngineError, match=r"GPU-a is.* 9000 MiB.*GPU-b is.* 9000 MiB"):
            executor.free()
    assert [one.split()[0] for one in executor.warnings] == GPUS


def test_another_device_is_taken_than_the_one_to_avoid_if_there_is_one() -> None:
    devices = DevicePool(GPUS, look=list)
    devices.free()
    assert devices.take("GPU-a") == "GPU-b"
    assert devices.take("GPU-a") == "GPU-a"


def test_an_executor_withdraws_a_device_that_says_that_it_fails(
    make_attempt: Make, nasty: str
) -> None:
    cause = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"
    said = f'{{"attempt_id": "ID", "status": "error", "cause": "{cause}"}}'
    slots = Slots(2, "cuda", "a GPU", 1)
    with LocalExecutor(slots, entry=nasty, gpu_ids=GPUS) as executor:
        executor.submit(make_attempt("write", content=said))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.ERROR, "GPU-a")
        assert executor.free() == 1
        executor.submit(make_attempt("finish"))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.OK, "GPU-b")
    assert executor.warnings == (f"GPU-a is not used any more: the device failed: {cause}",)
