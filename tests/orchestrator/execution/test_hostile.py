"""Evaluations that take the machine along: unkillable, out of memory or disk, links, meddling.

Some need root and say so where they may not be run.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from orchestrator.execution import attempts, processes
from orchestrator.execution.evaluate import Attempt, Outcome, Slots
from orchestrator.execution.executors import LocalExecutor
from orchestrator.execution.launch import Program

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
    freezer: Path, make_attempt: Make, slots: Slots, nasty: Program, family: Any, eventually: Any
) -> None:
    attempt = make_attempt("hang")
    with LocalExecutor(slots, program=nasty) as executor:
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
        (gone,) = executor.withdrawn
        assert gone.device == "cpu"
        assert gone.why == f"processes of {attempt.attempt_id} cannot be ended there"
        assert executor.free() == 1
        executor.submit(make_attempt("finish"))
        assert [one.status for one in executor.wait(20.0)] == [Status.OK]
    (freezer / "freezer.state").write_text("THAWED")
    family.vanish(attempt, within_seconds=5.0)
    eventually(lambda: attempts.read_summary(attempt.directory, attempt.attempt_id) == outcome)


def test_an_attempt_whose_supervisor_is_stopped_is_killed_and_comes_back_lost_at_what_it_took(
    make_attempt: Make, slots: Slots, nasty: Program, family: Any
) -> None:
    attempt = make_attempt("stop_supervisor", wall_seconds=2.0, grace_seconds=0.2)
    with LocalExecutor(slots, program=nasty, overrun_seconds=2.0) as executor:
        executor.submit(attempt)
        family.assemble(attempt, 1)
        (outcome,) = executor.wait(20.0)
        assert outcome.status is Status.LOST
        assert outcome.seconds > attempt.limits.reserve_ms / 1000 + 2.0
        assert executor.withdrawn == ()
        family.vanish(attempt, within_seconds=5.0)


def test_what_the_kernel_kills_for_memory_is_out_of_memory_and_its_neighbour_goes_on(
    small_memory: Path, make_attempt: Make, slots: Slots, nasty: Program
) -> None:
    eater = make_attempt("eat_within", group=str(small_memory))
    neighbour = make_attempt("chatter")
    with LocalExecutor(slots, program=nasty) as executor:
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


def test_a_result_reaches_the_disk_that_its_evaluation_has_filled(
    small_disk: Path, make_attempt: Make, run: Run
) -> None:
    attempt = on(small_disk, make_attempt("finish_and_fill_the_disk"))
    outcome = run(attempt)
    assert outcome.status is Status.OK
    assert outcome.measurement.score == 1.5
    assert attempts.read_summary(attempt.directory, attempt.attempt_id) == outcome


def test_an_evaluation_that_finds_no_room_for_its_result_fails_and_says_so(
    small_disk: Path, make_attempt: Make, run: Run
) -> None:
    outcome = run(on(small_disk, make_attempt("fill_the_disk_and_finish")))
    assert outcome.status is Status.ERROR
    assert outcome.cause.endswith("No space left on device")


def test_an_attempt_without_room_even_for_its_summary_comes_back_all_the_same(
    small_disk: Path, make_attempt: Make, run: Run
) -> None:
    attempt = on(small_disk, make_attempt("fill_the_room_too"))
    outcome = run(attempt)
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
    small_disk: Path, make_attempt: Make, slots: Slots, nasty: Program
) -> None:
    attempt = on(small_disk, make_attempt("finish"))
    attempts.write_config(attempt)
    filled(small_disk)
    with LocalExecutor(slots, program=nasty) as executor:
        executor.submit(attempt, has_config=True)
        (outcome,) = executor.wait(20.0)
        assert executor.free() == 2
    assert (outcome.status, outcome.cause) == (
        Status.LOST,
        "it was never started; the disk is full",
    )


@pytest.fixture
def summary_room(small_disk: Path) -> Iterator[attempts.SummaryRoom]:
    """Room that was set aside there and that something has taken away."""
    room = attempts.SummaryRoom(small_disk)
    (small_disk / attempts.SUMMARY_ROOM).write_bytes(b"")
    yield room
    os.close(room._file)  # as the supervisor's end does


def test_a_summary_that_finds_the_disk_full_is_written_once_there_is_room(
    small_disk: Path, summary_room: attempts.SummaryRoom
) -> None:
    filler = filled(small_disk)
    outcome = Outcome(attempt_id="a", status=Status.LOST, seconds=1.0)
    with pytest.raises(OSError, match="No space left"):
        summary_room.write(outcome, patience_seconds=0.0)

    somebody = threading.Timer(0.05, filler.unlink)
    somebody.start()
    summary_room.write(outcome, patience_seconds=30.0)
    somebody.join()

    assert attempts.read_summary(small_disk, "a") == outcome


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


def test_a_measurement_nested_without_end_is_refused(make_attempt: Make, run: Run) -> None:
    content = '{"attempt_id": "ID", "status": "ok", "measurement": ' + "[" * 100_000
    outcome = run(make_attempt("write", content=content))
    assert outcome.status is Status.ERROR
    assert "measurement.json is not valid" in outcome.cause


def test_a_summary_that_is_a_link_is_not_read(make_attempt: Make, tmp_path: Path) -> None:
    attempt = make_attempt()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f'{{"attempt_id": "{attempt.attempt_id}", "status": "ok", "seconds": 1}}')
    (attempt.directory / attempts.SUMMARY).symlink_to(elsewhere)
    assert attempts.read_summary(attempt.directory, attempt.attempt_id) is None


@pytest.mark.parametrize("launcher", ["fork", "exec"])
def test_what_an_evaluation_does_to_its_own_process_stays_there(
    launcher: str, make_attempt: Make, slots: Slots, nasty: Program
) -> None:
    before = (os.getcwd(), signal.getsignal(signal.SIGTERM))
    with LocalExecutor(slots, launcher, program=nasty) as executor:  # type: ignore[arg-type]
        executor.submit(make_attempt("meddle"))
        (outcome,) = executor.wait(20.0)
        assert outcome.status is Status.OK
        executor.submit(make_attempt("finish"))
        assert [one.status for one in executor.wait(20.0)] == [Status.OK]
    assert (os.getcwd(), signal.getsignal(signal.SIGTERM)) == before


def test_a_device_that_ran_out_of_memory_is_used_again(make_attempt: Make, nasty: Program) -> None:
    said = '{"attempt_id": "ID", "status": "oom", "cause": "CUDA out of memory"}'
    slots = Slots(1, "cuda", "a GPU", 1)
    with LocalExecutor(slots, program=nasty, gpu_ids=["GPU-a"]) as executor:
        executor.submit(make_attempt("write", content=said))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.cause) == (Status.OOM, "CUDA out of memory")
        executor.submit(make_attempt("finish"))
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.device) == (Status.OK, "GPU-a")
