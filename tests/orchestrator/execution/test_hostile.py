"""Evaluations that take the machine along: unkillable, out of memory or disk, links, meddling.

Some need root and say so where they may not be run.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from orchestrator.execution import files, processes
from orchestrator.execution.api import Attempt, Outcome, Slots
from orchestrator.execution.local import LocalExecutor

Make = Callable[..., Attempt]
Run = Callable[..., Any]
CGROUPS = Path("/sys/fs/cgroup")


def control_group(kind: str, name: str) -> Path:
    """A new control group of that kind, or the test is skipped."""
    group = CGROUPS / kind / name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"cannot make a control group in {group.parent}: {error.strerror}")
    return group


@pytest.fixture
def freezer(tmp_path: Path) -> Iterator[Path]:
    """A control group whose processes, once frozen, not even SIGKILL ends."""
    group = control_group("freezer", tmp_path.name)
    yield group
    (group / "freezer.state").write_text("THAWED")
    pids = [int(pid) for pid in (group / "tasks").read_text().split()]
    processes.send(pids, signal.SIGKILL)
    while (group / "tasks").read_text():
        os.sched_yield()
    group.rmdir()


@pytest.fixture
def small_memory(tmp_path: Path) -> Iterator[Path]:
    """A control group with 200 MiB."""
    group = control_group("memory", tmp_path.name)
    (group / "memory.limit_in_bytes").write_text(str(200 << 20))
    yield group
    while (group / "tasks").read_text():
        os.sched_yield()
    group.rmdir()


@pytest.fixture
def small_disk(tmp_path: Path, eventually: Any) -> Iterator[Path]:
    """A file system of 1 MiB."""
    where = tmp_path / "disk"
    where.mkdir()
    command = ["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "none", str(where)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a file system: {mounted.stderr.strip()}")
    yield where
    release = ["/bin/umount", str(where)]  # busy until the last supervisor has left
    eventually(lambda: subprocess.run(release, check=False).returncode == 0)


def test_a_tree_that_cannot_be_killed_is_given_back_and_its_device_withdrawn(
    freezer: Path, make_attempt: Make, slots: Slots, nasty: str, family: Any, eventually: Any
) -> None:
    attempt = make_attempt("hang")
    with LocalExecutor(slots, entry=nasty) as executor:
        executor.submit(attempt)
        family.assemble(attempt, 1)
        (freezer / "tasks").write_text(str(family.noted(attempt)[0]))
        (freezer / "freezer.state").write_text("FROZEN")
        eventually(lambda: (freezer / "freezer.state").read_text() == "FROZEN\n")
        executor.cancel()
        (outcome,) = executor.wait(20.0)
        assert outcome.status is Status.CANCELLED  # as its supervisor says, which still tries
        assert 0.6 <= outcome.seconds < 20.0
        assert family.alive(attempt)
        (gone,) = executor.warnings
        assert gone.endswith(f"processes of {attempt.attempt_id} cannot be ended there")
        assert executor.free() == 1
        executor.submit(make_attempt("finish"))
        assert [one.status for one in executor.wait(20.0)] == [Status.OK]
    (freezer / "freezer.state").write_text("THAWED")
    family.vanish(attempt, within_seconds=5.0)
    eventually(lambda: files.read_summary(attempt.directory, attempt.attempt_id) == outcome)


def test_what_the_kernel_kills_for_memory_is_out_of_memory_and_its_neighbour_goes_on(
    small_memory: Path, make_attempt: Make, slots: Slots, nasty: str
) -> None:
    eater = make_attempt("eat_within", group=str(small_memory))
    neighbour = make_attempt("chatter")
    with LocalExecutor(slots, entry=nasty) as executor:
        executor.submit(neighbour)
        executor.submit(eater)
        found: dict[str, Outcome] = {}
        while len(found) < 2:
            found |= {one.attempt_id: one for one in executor.wait(60.0)}
    assert found[eater.attempt_id].status is Status.OOM
    assert found[eater.attempt_id].cause.endswith("the kernel ran out of memory")
    assert found[neighbour.attempt_id].status is Status.OK


def on(disk: Path, attempt: Attempt) -> Attempt:
    moved = attempt.model_copy(update={"directory": disk / attempt.directory.name})
    moved.directory.mkdir()
    return moved


def test_an_evaluation_that_fills_the_disk_comes_back_lost_and_says_why(
    small_disk: Path, make_attempt: Make, run: Run
) -> None:
    outcome = run(on(small_disk, make_attempt("finish_and_fill_the_disk")))
    assert outcome.status is Status.LOST
    assert outcome.cause.endswith("the disk is full")


def filled(disk: Path) -> Path:
    """Nothing more fits on it; the file that takes it all."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return filler


def test_an_attempt_that_a_full_disk_keeps_from_starting_is_over_at_once(
    small_disk: Path, make_attempt: Make, slots: Slots, nasty: str
) -> None:
    attempt = on(small_disk, make_attempt("finish"))
    files.write_config(attempt)
    filled(small_disk)
    with LocalExecutor(slots, entry=nasty) as executor:
        executor.start(attempt)
        (outcome,) = executor.wait(20.0)
        assert executor.free() == 2
    assert (outcome.status, outcome.cause) == (
        Status.LOST,
        "it was never started; the disk is full",
    )


@pytest.mark.parametrize(
    ("do", "cause"),
    [
        ("link", "cannot be read: Too many levels of symbolic links"),
        ("pipe", "is no regular file"),
    ],
)
def test_a_measurement_that_is_no_file_of_its_own_is_refused(
    do: str, cause: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt(do))
    assert outcome.status is Status.ERROR
    assert cause in outcome.cause


def test_a_summary_that_is_a_link_is_not_read(make_attempt: Make, tmp_path: Path) -> None:
    attempt = make_attempt()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f'{{"attempt_id": "{attempt.attempt_id}", "status": "ok", "seconds": 1}}')
    (attempt.directory / files.SUMMARY).symlink_to(elsewhere)
    assert files.read_summary(attempt.directory, attempt.attempt_id) is None


def test_what_an_evaluation_does_to_its_own_process_stays_there(
    make_attempt: Make, slots: Slots, nasty: str
) -> None:
    before = (os.getcwd(), signal.getsignal(signal.SIGTERM))
    with LocalExecutor(slots, entry=nasty) as executor:
        executor.submit(make_attempt("meddle"))
        (outcome,) = executor.wait(20.0)
        assert outcome.status is Status.OK
        executor.submit(make_attempt("finish"))
        assert [one.status for one in executor.wait(20.0)] == [Status.OK]
    assert (os.getcwd(), signal.getsignal(signal.SIGTERM)) == before
