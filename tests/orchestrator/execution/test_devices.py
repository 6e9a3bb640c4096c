from pathlib import Path

import pytest

from orchestrator.execution.devices import Offer, local_offer, usable_cpus, visible_gpus
from orchestrator.execution.evaluate import Slots


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


def test_threads_divide_the_cpus() -> None:
    assert Offer(cpus=7, cpu_name="x").slots(threads=2) == Slots(3, "cpu", "x", 2)


@pytest.mark.parametrize(("device", "count"), [("cuda", 3), ("cpu", 9), ("cuda", 0)])
def test_more_than_there_is_or_nothing_at_all_is_refused(device: str, count: int) -> None:
    with pytest.raises(ValueError, match=r"asked for|at least one"):
        Offer(cpus=8, cpu_name="x", gpus=2).slots(device, count)  # type: ignore[arg-type]
