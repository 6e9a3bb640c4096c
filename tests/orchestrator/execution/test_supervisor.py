"""How attempts end under a supervisor, with misbehaving programs and machines."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Owner, Status
from objectives.api import Measurement
from orchestrator.execution import api, local, processes, supervisor
from orchestrator.execution.api import Attempt, Outcome, Report, write_model
from orchestrator.execution.devices import make_devices
from orchestrator.execution.local import LocalExecutor
from orchestrator.execution.supervisor import Watch
from tests.orchestrator.execution.conftest import (
    NASTY,
    TWO,
    alive,
    assemble,
    noted,
    run_one,
    vanish,
    wait_until,
)

Make = Callable[..., Attempt]


def test_silence_is_a_stall_and_output_heartbeats_and_cpu_time_are_none(
    make_attempt: Make,
) -> None:
    wanted = [
        make_attempt("chatter", by=by, stall_seconds=1.2)
        for by in ("output", "heartbeats", "CPU time", "nothing")
    ]
    ended: dict[str, Outcome] = {}
    with LocalExecutor(make_devices(4), NASTY) as executor:
        for attempt in wanted:
            executor.submit(attempt)
        while len(ended) < 4:
            ended |= {one.attempt_id: one for one in executor.wait(60.0)}
    *alive, stalled = (ended[attempt.attempt_id] for attempt in wanted)
    assert [one.status for one in alive] == [Status.OK] * 3
    assert stalled.status is Status.TIMEOUT
    assert stalled.cause.startswith("stalled")
    assert all(one.seconds > 1.2 for one in ended.values())


def test_a_tree_over_its_memory_is_out_of_memory(make_attempt: Make) -> None:
    outcome = run_one(make_attempt("eat", memory_bytes=300 << 20))
    assert outcome.status is Status.OOM
    assert 300 << 20 < outcome.peak_memory_bytes < 900 << 20


def test_a_flooded_log_keeps_its_ends(make_attempt: Make) -> None:
    attempt = make_attempt("flood", mib=64, log_bytes=10_000)
    outcome = run_one(attempt)
    text = (attempt.directory / "stdout.txt").read_text()
    assert outcome.status is Status.OK
    assert "\n[... output dropped ...]\n" in text
    assert text.startswith("the first line\n")
    assert text.endswith("the last line\n")
    assert len(text) == 10_000


def test_a_crash_is_an_error_with_its_last_words(make_attempt: Make) -> None:
    outcome = run_one(make_attempt("exit_with_3"))
    assert outcome.status is Status.ERROR
    assert outcome.cause == "exited with status 3: something broke"


def test_the_evaluation_inherits_nothing_but_what_it_needs(make_attempt: Make) -> None:
    attempt = make_attempt("facts")
    assert run_one(attempt).status is Status.OK
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


def test_nothing_is_launched_for_an_owner_that_is_dead(make_attempt: Make, dead: Owner) -> None:
    attempt = make_attempt("finish", owner=dead)
    outcome = run_one(attempt)
    assert (outcome.status, outcome.cause) == (
        Status.LOST,
        "the orchestrator's process is gone",
    )
    assert (attempt.directory / api.STARTED).exists()
    assert not (attempt.directory / "stdout.txt").exists()


@pytest.mark.parametrize("another", ["has ended it", "supervises it"])
def test_an_attempt_that_another_has_already_is_not_begun(another: str, make_attempt: Make) -> None:
    attempt = make_attempt("finish")
    if another == "has ended it":
        lost = Outcome(attempt_id=attempt.attempt_id, status=Status.LOST, seconds=1.0)
        api.write_summary(attempt.directory, lost)
        supervised(attempt)
        assert api.read_own(attempt, Outcome) == lost
    else:
        with api.locked(attempt.directory):
            supervised(attempt)
    assert not (attempt.directory / api.STARTED).exists()


def supervised(attempt: Attempt) -> None:
    """Hand it to a supervisor of our own, and wait for its end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if (pid := os.fork()) == 0:
            with suppress(BaseException):
                supervisor.supervise(theirs, {"directory": str(attempt.directory)})
            os._exit(0)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(
    ("do", "status"),
    [
        ("tidy", Status.CANCELLED),
        ("finish_then_hang", Status.OK),  # a finished measurement wins
    ],
)
def test_a_cancelled_attempt_is_asked_to_leave_before_it_is_killed(
    do: str, status: Status, make_attempt: Make
) -> None:
    attempt = make_attempt(do, grace_seconds=30.0 if do == "tidy" else 0.3)
    with LocalExecutor(TWO, NASTY) as executor:
        executor.submit(attempt)
        assemble(attempt, 1)
        executor.cancel()
        (outcome,) = executor.wait(20.0)
    assert outcome.status is status
    assert (attempt.directory / "tidied").exists() == (do == "tidy")


# Leases and limits


def test_a_result_is_unwanted_without_the_lease_the_executor_or_the_owner(
    make_attempt: Make,
) -> None:
    stranger = processes.this_owner().model_copy(update={"start_ticks": 1})
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)

    def violated(owner: Owner | None = None, **found: Any) -> tuple[Status, str] | None:
        watch = Watch(make_attempt(owner=owner), theirs, 0.0, deadline=0.0, **found)
        watch.check_wanted()
        return watch.violation

    assert violated() == (Status.LOST, "the orchestrator has not renewed its lease")
    ours.send(repr(time.monotonic() + 60.0).encode())
    assert violated() is None
    ours.send(b"inf")
    assert violated(stranger) == (Status.LOST, "the orchestrator's process is gone")
    ours.send(supervisor.CANCEL)
    assert violated() == (Status.CANCELLED, "cancelled by the orchestrator")
    ours.close()
    assert violated() == (Status.LOST, "the executor's process is gone")
    assert violated(exit_code=0) is None
    theirs.close()


# What a watch makes of its end


@pytest.mark.parametrize(
    ("violation", "counts"),
    [
        (Status.LOST, True),  # a result that was there when its reader vanished is paid for
        (Status.CANCELLED, True),
        (Status.TIMEOUT, False),
        (Status.OOM, False),
    ],
)
def test_a_result_counts_unless_its_evaluation_broke_a_limit(
    make_attempt: Make, violation: Status, counts: bool
) -> None:
    attempt, began = make_attempt(), time.monotonic() - 5.0
    measured = Measurement(score=1.5)
    report = Report(attempt_id=attempt.attempt_id, status=Status.OK, measurement=measured)
    write_model(attempt.directory, report)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch = Watch(attempt, theirs, began, violation=(violation, "why"), trainer=1)
        outcome = watch.outcome()
    assert outcome.status is (Status.OK if counts else violation)
    assert outcome.measurement == (measured if counts else None)


# What cannot be killed; needs root

CGROUPS = Path("/sys/fs/cgroup")


@pytest.fixture
def freezer(tmp_path: Path) -> Iterator[Path]:
    """A control group whose processes, once frozen, not even SIGKILL ends."""
    group = CGROUPS / "freezer" / tmp_path.name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"cannot make a control group in {group.parent}: {error.strerror}")
    yield group
    (group / "freezer.state").write_text("THAWED")
    pids = [int(pid) for pid in (group / "tasks").read_text().split()]
    processes.send(pids, signal.SIGKILL)
    while (group / "tasks").read_text():
        os.sched_yield()
    group.rmdir()


def test_a_tree_that_cannot_be_killed_is_given_back_and_its_device_withdrawn(
    freezer: Path,
    make_attempt: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "OVERRUN_SECONDS", 1.0)
    attempt = make_attempt("hang", wall_seconds=2.0, grace_seconds=0.2)
    with LocalExecutor(TWO, NASTY) as executor:
        executor.submit(attempt)
        assemble(attempt, 1)
        (freezer / "tasks").write_text(str(noted(attempt)[0]))
        (freezer / "freezer.state").write_text("FROZEN")
        wait_until(lambda: (freezer / "freezer.state").read_text() == "FROZEN\n")
        (outcome,) = executor.wait(20.0)
        assert outcome.status is Status.LOST
        assert alive(attempt)
        (gone,) = executor.warnings
        assert gone.endswith(f"processes of {attempt.attempt_id} cannot be ended there")
        assert executor.free() == 1
        executor.submit(make_attempt("finish"))
        assert [one.status for one in executor.wait(20.0)] == [Status.OK]
    (freezer / "freezer.state").write_text("THAWED")
    vanish(attempt, within_seconds=5.0)
