"""How attempts end under a supervisor, with misbehaving programs and machines."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Owner, Status
from orchestrator.execution import files, local, processes, supervisor
from orchestrator.execution.api import Attempt, Outcome, Slots
from orchestrator.execution.local import LocalExecutor

Make = Callable[..., Attempt]
Run = Callable[..., Any]


@pytest.mark.parametrize("by", ["output", "heartbeats", "nothing"])
def test_silence_is_a_stall_and_output_and_heartbeats_are_none(
    by: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt("chatter", by=by, stall_seconds=1.2))
    assert outcome.status is (Status.TIMEOUT if by == "nothing" else Status.OK)
    assert outcome.cause.startswith("stalled" if by == "nothing" else "")
    assert outcome.seconds > 1.2


def test_a_tree_over_its_memory_is_out_of_memory(make_attempt: Make, run: Run) -> None:
    outcome = run(make_attempt("eat", memory_bytes=300 << 20))
    assert outcome.status is Status.OOM
    assert 300 << 20 < outcome.peak_memory_bytes < 900 << 20


@pytest.mark.parametrize(
    ("do", "cause"),
    [
        ("kill_itself", "killed by signal 9 SIGKILL"),
        ("exit_with_3", "exited with status 3: something broke"),
    ],
)
def test_a_crash_is_an_error_that_names_it(
    do: str, cause: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt(do))
    assert (outcome.status, outcome.cause) == (Status.ERROR, cause)


def test_a_flooded_log_keeps_its_ends_and_counts_the_rest(make_attempt: Make, run: Run) -> None:
    attempt = make_attempt("flood", mib=64, log_bytes=10_000)
    outcome = run(attempt)
    text = (attempt.directory / "stdout.txt").read_text()
    assert outcome.status is Status.OK
    assert f"[... {(64 << 20) + 29 - 10_000} bytes dropped ...]" in text
    assert text.startswith("the first line\n")
    assert text.endswith("the last line\n")
    assert len(text) < 10_100


@pytest.mark.parametrize(
    ("do", "cause"),
    [
        ("nothing", "no measurement.json was written"),
        ("link", "measurement.json is a symbolic link"),
        ("pipe", "measurement.json is no plain file"),
    ],
)
def test_a_measurement_that_cannot_be_believed_is_an_error(
    do: str, cause: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt(do))
    assert outcome.status is Status.ERROR
    assert outcome.cause.startswith("exited with 0, but ")
    assert cause in outcome.cause


def test_the_evaluation_inherits_nothing_but_what_it_needs(make_attempt: Make, run: Run) -> None:
    attempt = make_attempt("facts")
    assert run(attempt).status is Status.OK
    facts = json.loads((attempt.directory / "facts.json").read_text())
    assert facts["fds"] == [0, 1, 2, 3]  # the last is the listing itself
    assert facts["stdin"] == os.devnull
    assert facts["cwd"] == str(attempt.directory)
    assert facts["environment"] == {
        "ATTEMPT_ID": attempt.attempt_id,
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    assert facts["visible_mark"]
    assert facts["oom_score_adj"] == 1000
    assert facts["leads_its_group"]
    assert facts["ignored"] == []


def test_nothing_is_launched_for_an_owner_that_is_dead(
    make_attempt: Make, run: Run, dead: Owner
) -> None:
    attempt = make_attempt("finish", owner=dead)
    outcome = run(attempt)
    assert (outcome.status, outcome.cause) == (
        Status.LOST,
        "the orchestrator's process is gone",
    )
    assert (attempt.directory / files.STARTED).exists()
    assert not (attempt.directory / "stdout.txt").exists()


@pytest.mark.parametrize("somebody", ["has ended it", "supervises it"])
def test_an_attempt_that_is_somebodys_already_is_not_begun(
    somebody: str, make_attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOCK_WAIT_SECONDS", 0.0)
    attempt = make_attempt("finish")
    files.write_config(attempt)
    if somebody == "has ended it":
        lost = Outcome(attempt_id=attempt.attempt_id, status=Status.LOST, seconds=1.0)
        files.write_summary(attempt.directory, lost)
        supervised(attempt)
        assert files.read_summary(attempt.directory, attempt.attempt_id) == lost
    else:
        with files.locked(attempt.directory):
            supervised(attempt)
    assert not (attempt.directory / files.STARTED).exists()


def test_a_cancellation_that_comes_with_the_marker_ends_the_attempt_as_cancelled(
    make_attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*args: Any, begun: Callable[..., bool] = supervisor._begin) -> bool:
        is_begun = begun(*args)
        os.kill(os.getpid(), signal.SIGTERM)
        return is_begun

    monkeypatch.setattr(supervisor, "_begin", begin)
    attempt = make_attempt("finish")
    files.write_config(attempt)
    supervised(attempt)
    outcome = files.read_summary(attempt.directory, attempt.attempt_id)
    assert outcome is not None
    assert outcome.status is Status.CANCELLED
    assert not (attempt.directory / "stdout.txt").exists()


def supervised(attempt: Attempt) -> None:
    """Hand it to a supervisor of our own, and wait for its end."""
    (heard, notify), (lifeline, alive) = os.pipe(), os.pipe()
    if (pid := os.fork()) == 0:
        os.close(alive)
        with suppress(BaseException):
            common = supervisor.Supervision(notify, lifeline, None, "nasty:main", 1, "")
            supervisor.supervise(attempt.directory, None, common)
        os._exit(0)
    os.waitpid(pid, 0)
    for descriptor in (heard, notify, lifeline, alive):
        os.close(descriptor)


def cancelled(attempt: Attempt, slots: Slots, nasty: str, family: Any) -> Outcome:
    """How it ends if it is cancelled once its trainer does what it should."""
    with LocalExecutor(slots, entry=nasty) as executor:
        executor.submit(attempt)
        family.assemble(attempt, 1)
        executor.cancel()
        (outcome,) = executor.wait(20.0)
        return outcome


@pytest.mark.parametrize(
    ("do", "status"),
    [
        ("hang", Status.CANCELLED),
        ("tidy", Status.CANCELLED),
        ("finish_then_hang", Status.OK),  # a finished measurement wins
    ],
)
def test_a_cancelled_attempt_is_asked_to_leave_before_it_is_killed(
    do: str, status: Status, make_attempt: Make, slots: Slots, nasty: str, family: Any
) -> None:
    attempt = make_attempt(do, grace_seconds=30.0 if do == "tidy" else 0.3)
    assert cancelled(attempt, slots, nasty, family).status is status
    assert (attempt.directory / "tidied").exists() == (do == "tidy")


# What takes the machine along: unkillable, stopped, a full disk. Some need root

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
    freezer: Path,
    make_attempt: Make,
    slots: Slots,
    nasty: str,
    family: Any,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "OVERRUN_SECONDS", 1.0)
    attempt = make_attempt("hang", wall_seconds=2.0, grace_seconds=0.2)
    with LocalExecutor(slots, entry=nasty) as executor:
        executor.submit(attempt)
        family.assemble(attempt, 1)
        (freezer / "tasks").write_text(str(family.noted(attempt)[0]))
        (freezer / "freezer.state").write_text("FROZEN")
        eventually(lambda: (freezer / "freezer.state").read_text() == "FROZEN\n")
        (outcome,) = executor.wait(20.0)
        assert outcome.status is Status.LOST
        assert family.alive(attempt)
        (gone,) = executor.warnings
        assert gone.endswith(f"processes of {attempt.attempt_id} cannot be ended there")
        assert executor.free() == 1
        executor.submit(make_attempt("finish"))
        assert [one.status for one in executor.wait(20.0)] == [Status.OK]
    (freezer / "freezer.state").write_text("THAWED")
    family.vanish(attempt, within_seconds=5.0)


def on(disk: Path, attempt: Attempt) -> Attempt:
    moved = attempt.model_copy(update={"directory": disk / attempt.directory.name})
    moved.directory.mkdir()
    return moved


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
