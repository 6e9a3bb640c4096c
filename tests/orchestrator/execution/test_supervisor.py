import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Owner, Status
from orchestrator.execution import files, supervisor
from orchestrator.execution.api import Attempt, Outcome, Slots
from orchestrator.execution.local import LocalExecutor
from orchestrator.execution.watch import CappedLog

Make = Callable[..., Attempt]
Run = Callable[..., Any]


def test_silence_is_a_stall(make_attempt: Make, run: Run) -> None:
    outcome = run(make_attempt("hang", stall_seconds=0.5))
    assert outcome.status is Status.TIMEOUT
    assert outcome.cause.startswith("stalled")
    assert outcome.seconds < 5.0


@pytest.mark.parametrize("by", ["output", "heartbeats"])
def test_output_and_heartbeats_hold_off_the_stall_limit(
    by: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt("chatter", by=by, stall_seconds=1.2))
    assert outcome.status is Status.OK
    assert outcome.seconds > 1.2


def test_a_tree_over_its_memory_is_out_of_memory(make_attempt: Make, run: Run) -> None:
    outcome = run(make_attempt("eat", memory_bytes=300 << 20))
    assert outcome.status is Status.OOM
    assert 300 << 20 < outcome.peak_memory_bytes < 900 << 20


@pytest.mark.parametrize(
    ("do", "cause"),
    [
        ("segfault", "killed by signal 11 SIGSEGV"),
        ("kill_itself", "killed by signal 9 SIGKILL"),
        ("exit_with_3", "exited with status 3: something broke"),
    ],
)
def test_a_crash_is_an_error_that_names_it(
    do: str, cause: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt(do))
    assert (outcome.status, outcome.cause) == (Status.ERROR, cause)


@pytest.mark.parametrize("mib", [64, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_flooded_log_keeps_its_ends_and_counts_the_rest(
    mib: int, make_attempt: Make, run: Run
) -> None:
    attempt = make_attempt("flood", mib=mib, log_bytes=10_000)
    outcome = run(attempt)
    text = (attempt.directory / "stdout.txt").read_text()
    assert outcome.status is Status.OK
    assert text.startswith("the first line\n")
    assert text.endswith("the last line\n")
    assert len(text) < 10_100
    assert outcome.log_bytes_dropped == (mib << 20) + 29 - 10_000


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ('{"attempt_id": "cut', "is not valid"),
        ('{"attempt_id": "another", "status": "nan"}', "is of attempt 'another'"),
        (None, "no measurement.json was written"),
    ],
)
def test_a_measurement_that_cannot_be_believed_is_an_error(
    content: str | None, cause: str, make_attempt: Make, run: Run
) -> None:
    outcome = run(make_attempt("write" if content is not None else "nothing", content=content))
    assert outcome.status is Status.ERROR
    assert outcome.cause.startswith(
        ("exited with 0, but measurement.json", "exited with 0, but no")
    )
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


def test_a_cancelled_attempt_is_asked_to_leave_before_it_is_killed(
    make_attempt: Make, slots: Slots, nasty: str, family: Any
) -> None:
    attempt = make_attempt("tidy", grace_seconds=30.0)
    assert cancelled(attempt, slots, nasty, family).status is Status.CANCELLED
    assert (attempt.directory / "tidied").exists()


@pytest.mark.parametrize(
    ("do", "status"), [("hang", Status.CANCELLED), ("finish_then_hang", Status.OK)]
)
def test_a_finished_measurement_wins_over_a_simultaneous_cancellation(
    do: str, status: Status, make_attempt: Make, slots: Slots, nasty: str, family: Any
) -> None:
    assert cancelled(make_attempt(do), slots, nasty, family).status is status


def test_capped_log_loses_nothing_below_its_cap(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    log = CappedLog(reader, tmp_path / "log", cap_bytes=10)
    for part in (b"abc", b"defg", b"hij"):
        os.write(writer, part)
        log.drain()
    os.close(writer)
    assert log.drain() == 0
    log.close()
    assert (tmp_path / "log").read_bytes() == b"abcdefghij"
    assert log.dropped_bytes == 0


def test_capped_log_drops_the_middle(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    log = CappedLog(reader, tmp_path / "log", cap_bytes=10)
    os.write(writer, b"abcdefghijklmnopqrstuvwxyz")
    os.close(writer)
    log.drain()
    log.close()
    assert (tmp_path / "log").read_bytes() == b"abcde\n[... 16 bytes dropped ...]\nvwxyz"
