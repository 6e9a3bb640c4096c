"""Devices, and who else uses them."""

import os
from pathlib import Path

import pytest

from orchestrator.doctor import machine
from orchestrator.doctor.devices import Busy, Graphics, busy, cpus, gpus, memory, slots
from orchestrator.execution.devices import Offer
from orchestrator.execution.evaluate import Slots
from orchestrator.execution.occupancy import Gpu

OFFER = Offer(8, "AMD EPYC")
TWO = (("GPU-a", "NVIDIA H200"), ("GPU-b", "NVIDIA H200"))
FREE = Gpu("0", "GPU-a", 4, ())
TAKEN = Gpu("1", "GPU-b", 30_000, (41, 42), ((41, 29_000), (42, None)))
FULL = Gpu("0", "GPU-a", 9_000, ())
ON_GPUS = Slots(2, "cuda", "NVIDIA H200", 4)


def name_of(pid: int) -> str:
    return f"trainer{pid}"


def test_the_cpus_are_told_with_their_load() -> None:
    assert cpus(OFFER, 1.25, ()).seen == "8 x AMD EPYC, load 1.2"
    assert cpus(OFFER, None, ()).seen.endswith("load unknown")


def test_who_uses_the_cpus_is_named() -> None:
    found = cpus(OFFER, 3.0, [Busy(7, "make", 2.5)])
    assert found.state == "ok"
    assert "make (pid 7) 2.5" in found.seen


def test_the_busiest_come_first_and_the_idle_and_the_new_are_left_out() -> None:
    before = {1: ("idle", 5.0), 2: ("half", 1.0), 3: ("whole", 1.0), 4: ("old", 1.0)}
    after = {1: ("idle", 5.1), 2: ("half", 2.0), 3: ("whole", 3.0), 4: ("new", 9.0), 5: ("x", 9.0)}
    assert busy(before, after, 2.0) == (Busy(3, "whole", 1.0), Busy(2, "half", 0.5))
    assert busy(before, after, 0.01) == ()


def test_this_process_and_others_are_timed() -> None:
    assert os.getpid() not in machine.cpu_times()
    assert os.getppid() in machine.cpu_times()


@pytest.mark.parametrize(
    ("available", "count", "state", "mend"),
    [
        (8 << 30, 8, "ok", ""),
        (3 << 30, 8, "missing", "--workers 6"),
        (100 << 20, 1, "missing", "end what uses it: ps aux --sort=-rss | head"),
    ],
)
def test_memory_is_held_against_what_so_many_evaluations_take(
    available: int, count: int, state: str, mend: str
) -> None:
    found = memory(16 << 30, available, Slots(count, "cpu", "x", 1))
    assert (found.state, found.mend) == (state, mend)


@pytest.mark.parametrize(
    ("graphics", "state", "words"),
    [
        (Graphics(program=False), "absent", "no nvidia-smi"),
        (Graphics(program=True), "unknown", "names none"),
        (Graphics(program=True, hidden=True), "absent", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_without_a_gpu_it_is_said_why(graphics: Graphics, state: str, words: str) -> None:
    (found,) = gpus(graphics, name_of)
    assert (found.item, found.state) == ("GPU", state)
    assert words in found.seen


def test_each_gpu_is_told_with_the_processes_on_it() -> None:
    free, taken = gpus(Graphics(True, TWO, (FREE, TAKEN)), name_of)
    assert (free.item, free.state) == ("GPU GPU-a", "ok")
    assert free.seen == "NVIDIA H200, 4 MiB in use: free"
    assert taken.state == "absent"
    assert taken.seen.endswith(
        "30000 MiB in use by trainer41 (pid 41, 29000 MiB), trainer42 (pid 42): not free"
    )
    assert taken.mend.startswith("export CUDA_VISIBLE_DEVICES=GPU-a, or kill 41 42")


def test_memory_that_nobody_seems_to_hold_is_not_free_either() -> None:
    (found,) = gpus(Graphics(True, TWO[:1], (FULL,)), name_of)
    assert found.state == "absent"
    assert found.mend.startswith("sudo fuser -v /dev/nvidia*")


def test_a_gpu_of_which_the_driver_says_nothing_is_unknown() -> None:
    assert [one.state for one in gpus(Graphics(True, TWO, (FREE,)), name_of)] == ["ok", "unknown"]


@pytest.mark.parametrize(
    ("asked", "seen", "state"),
    [
        (Slots(8, "cpu", "x", 1), (), "ok"),
        (ON_GPUS, (FREE, Gpu("1", "GPU-b", 4, ())), "ok"),
        (ON_GPUS, (FREE, TAKEN), "ok"),
        (ON_GPUS, (FULL, TAKEN), "missing"),
        (Slots(8, "cpu", "x", 1), (FULL, TAKEN), "ok"),
        ("9 CPUs asked for, but this machine offers 8", (), "missing"),
    ],
)
def test_a_run_needs_a_device_that_is_free(
    asked: Slots | str, seen: tuple[Gpu, ...], state: str
) -> None:
    assert slots(asked, Graphics(True, TWO, seen)).state == state


def test_the_drivers_own_program_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.graphics({}) == Graphics(program=False)
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\ncase $1 in\n"
        "*uuid,name) echo '0, GPU-a, NVIDIA H200' ;;\n"
        "*memory.used) echo '0, GPU-a, 30000' ;;\n"
        "*used_memory) echo 'GPU-a, 41, 29000'; echo 'GPU-a, 42, [N/A]' ;;\nesac\n"
    )
    program.chmod(0o700)
    found = machine.graphics({})
    assert found.visible == (("GPU-a", "NVIDIA H200"),)
    assert found.seen == (Gpu("0", "GPU-a", 30_000, (41, 42), ((41, 29_000), (42, None))),)
    assert machine.graphics({"CUDA_VISIBLE_DEVICES": ""}) == Graphics(True, hidden=True)
