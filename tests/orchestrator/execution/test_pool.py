"""GPUs that are not really free, by what a driver's program of our own says."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from budgets.events import Status
from orchestrator.execution.evaluate import Attempt, Slots
from orchestrator.execution.executors import LocalExecutor
from orchestrator.execution.launch import Program
from orchestrator.execution.occupancy import Gpu, look_at_gpus
from orchestrator.execution.pool import DevicePool
from orchestrator.execution.server import EngineError
from tests.orchestrator.execution.conftest import answer_as_driver

Make = Callable[..., Attempt]
GPUS = ["GPU-a", "GPU-b"]


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


def test_free_devices_are_used_in_order(driver: Driver) -> None:
    devices = pool()
    assert devices.free() == 2
    assert [devices.take(), devices.take()] == GPUS
    assert devices.free() == 0
    assert devices.withdrawn == ()


def test_a_device_with_a_foreign_process_is_named_and_the_others_are_used(driver: Driver) -> None:
    driver.says((30_000, 4), "GPU-a, 1, 29996\n")
    devices = pool()
    assert devices.free() == 1
    assert devices.take() == "GPU-b"
    (gone,) = devices.withdrawn
    assert gone.device == "GPU-a"
    assert gone.why.startswith("used by process 1 (")
    assert gone.why.endswith("30000 MiB in all")


def test_a_device_with_memory_left_over_is_named(driver: Driver) -> None:
    driver.says((4, 1500))
    devices = pool()
    assert devices.free() == 1
    (gone,) = devices.withdrawn
    assert (gone.device, gone.why) == ("GPU-b", "1500 MiB are in use, although no process is on it")


def test_the_little_that_a_driver_keeps_for_itself_does_not_count(driver: Driver) -> None:
    driver.says((600, 1024))
    assert pool().free() == 2


def test_with_no_device_left_all_are_listed(driver: Driver) -> None:
    driver.says((9000, 8000), "GPU-a, 1, 8990\n")
    with pytest.raises(EngineError, match=r"GPU-a: used by process 1.*GPU-b: 8000 MiB.*CUDA_VIS"):
        pool().free()


def test_memory_that_is_given_back_in_time_is_waited_for() -> None:
    answers: Iterator[int] = iter([9000, 9000, 4])

    def look() -> list[Gpu]:
        return [Gpu("0", "GPU-a", next(answers), ())]

    devices = DevicePool(["GPU-a"], 60.0, look)
    assert devices.free() == 1
    assert devices.withdrawn == ()


def test_a_device_is_looked_at_again_only_after_what_ended_badly(driver: Driver) -> None:
    devices = pool()
    devices.free()
    first, second = devices.take(), devices.take()
    driver.says((9000, 9000))
    devices.give_back(first, ended_well=True)
    assert devices.free() == 1
    devices.give_back(second, ended_well=False)
    assert devices.free() == 1
    assert [one.device for one in devices.withdrawn] == ["GPU-b"]


def test_devices_are_also_known_by_their_number(driver: Driver) -> None:
    driver.says((4, 9000))
    devices = DevicePool(["0", "1"], 0.0)
    assert devices.free() == 1
    assert [one.device for one in devices.withdrawn] == ["1"]


@pytest.mark.parametrize("said", ["[N/A]", "", "-"])
def test_what_the_driver_cannot_say_is_no_reason_to_doubt(driver: Driver, said: str) -> None:
    driver.says((said, said), "GPU-a, [N/A], [N/A]\n")
    assert look_at_gpus() == []
    assert pool().free() == 2


def test_without_the_drivers_program_nothing_is_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pool().free() == 2


def test_an_executor_withdraws_a_device_that_a_failed_attempt_left_in_use(
    driver: Driver, make_attempt: Make, nasty: Program
) -> None:
    slots = Slots(2, "cuda", "a GPU", 1)
    with LocalExecutor(slots, program=nasty, gpu_ids=GPUS, release_seconds=0.2) as executor:
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
        with pytest.raises(EngineError, match=r"GPU-a: 9000 MiB.*GPU-b: 9000 MiB"):
            executor.free()
    assert [one.device for one in executor.withdrawn] == GPUS


# Devices to avoid, devices that fail


def test_another_device_is_taken_than_the_one_to_avoid() -> None:
    devices = DevicePool(GPUS, 0.0, list)
    assert devices.free("GPU-a") == 1
    assert devices.take("GPU-a") == "GPU-b"
    assert devices.free() == 1


def test_the_device_to_avoid_is_not_offered_while_another_one_is_at_work() -> None:
    devices = DevicePool(GPUS, 0.0, list)
    devices.free()
    other = devices.take("GPU-a")
    assert devices.free("GPU-a") == 0
    devices.give_back(other, ended_well=True)
    assert devices.free("GPU-a") == 1


def test_another_device_that_is_still_looked_at_is_waited_for() -> None:
    answers = iter([[Gpu("1", "GPU-b", 9000, ())], [Gpu("1", "GPU-b", 9000, ())], []])
    devices = DevicePool(GPUS, 60.0, lambda: next(answers, []))
    assert devices.free("GPU-a") == 1
    assert devices.take("GPU-a") == "GPU-b"


@pytest.mark.parametrize("names", [[None, None], ["GPU-a"]])
def test_the_only_device_is_used_although_it_is_to_be_avoided(names: list[str | None]) -> None:
    devices = DevicePool(names, 0.0, list)
    avoid = names[0] or "cpu"
    assert devices.free(avoid) == len(names)
    assert devices.take(avoid) == names[0]
    assert devices.free(avoid) == len(names) - 1


def test_a_device_to_avoid_that_is_withdrawn_leaves_the_others() -> None:
    devices = DevicePool(GPUS, 0.0, list)
    devices.free()
    devices.give_up(devices.take(), "the device failed")
    assert devices.free("GPU-a") == 1
    assert devices.take("GPU-a") == "GPU-b"
    assert devices.free("GPU-b") == 0


def test_an_executor_withdraws_a_device_that_says_that_it_fails(
    make_attempt: Make, nasty: Program
) -> None:
    cause = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"
    said = f'{{"attempt_id": "ID", "status": "error", "cause": "{cause}"}}'
    slots = Slots(2, "cuda", "a GPU", 1)
    with LocalExecutor(slots, program=nasty, gpu_ids=GPUS) as executor:
        executor.submit(make_attempt("write", content=said))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.ERROR, "GPU-a")
        assert executor.free() == 1
        executor.submit(make_attempt("finish"))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.OK, "GPU-b")
    (gone,) = executor.withdrawn
    assert (gone.device, gone.why) == ("GPU-a", f"the device failed: {cause}")


def test_a_host_that_says_so_keeps_its_processors(make_attempt: Make, nasty: Program) -> None:
    said = '{"attempt_id": "ID", "status": "error", "cause": "no CUDA-capable device"}'
    with LocalExecutor(Slots(1, "cpu", "", 1), program=nasty) as executor:
        executor.submit(make_attempt("write", content=said))
        executor.wait(20.0)
        assert executor.free() == 1
    assert executor.withdrawn == ()
