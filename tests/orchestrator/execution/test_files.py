"""The files of an attempt: recovery from them, and files that are not trusted."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from budgets.events import Owner, Status
from objectives.process import MARK
from orchestrator.execution import api, processes
from orchestrator.execution.api import Attempt, Outcome, end_if_abandoned, recover

Make = Callable[..., Attempt]


@pytest.fixture
def sleeper() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """A process that carries an attempt's mark and would live on."""
    started: list[subprocess.Popen[bytes]] = []

    def start(attempt_id: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, MARK: attempt_id}
        command = [sys.executable, "-c", "print(flush=True); import time; time.sleep(600)"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


BUSY = """
import os, time
open("/proc/self/comm", "w").write("a) Z (b 1")
if not os.fork():
    while time.process_time() < 0.3: pass
    os._exit(0)
os.wait()
print(flush=True)
time.sleep(5)
"""


def test_what_processes_take_is_what_psutil_says() -> None:
    """Of a program with an odd name, whose child used the CPU and has ended."""
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        own = psutil.Process(program.pid)
        assert processes.cpu_seconds([program.pid]) == pytest.approx(sum(own.cpu_times()[:4]))
        assert processes.cpu_seconds([program.pid]) > 0.29
        assert processes.resident_bytes([program.pid]) == own.memory_info().rss
        program.kill()
    assert processes.cpu_seconds([program.pid]) == processes.resident_bytes([program.pid]) == 0


def started_by(attempt: Attempt, pid: int) -> None:
    ticks = processes.start_ticks(pid) or 1
    marker = api.Started(
        attempt_id=attempt.attempt_id, pid=pid, start_ticks=ticks, boot_id=processes.boot_id()
    )
    api.write_model(attempt.directory, marker)


@pytest.mark.parametrize(
    ("left", "is_charged"),
    [
        ("a summary of another attempt", True),
        ("half a summary", True),
        ("nothing", False),
        ("a config", False),
        ("a config of an owner elsewhere", True),
        ("no directory", True),
    ],
)
def test_what_is_not_known_to_be_unstarted_is_charged(
    left: str, is_charged: bool, make_attempt: Make, dead: Owner
) -> None:
    elsewhere = dead.model_copy(update={"boot_id": "another boot"})
    attempt = make_attempt(owner=elsewhere if "elsewhere" in left else dead)
    if left in ("nothing", "no directory"):
        (attempt.directory / api.CONFIG).unlink()
    if "summary" in left:
        started_by(attempt, os.getpid())
    if left == "half a summary":
        (attempt.directory / api.SUMMARY).write_text('{"attempt_id": "')
    elif "another attempt" in left:
        other = Outcome(attempt_id="another", status=Status.NAN, seconds=3.0)
        api.write_summary(attempt.directory, other)
    elif left == "no directory":
        attempt.directory.rmdir()
    found = recover(attempt, 0.0)
    assert found.status is Status.LOST
    assert found.seconds == (attempt.limits.reserve_ms / 1000 if is_charged else 0.0)


def test_what_a_dead_supervisor_left_is_killed_first(
    make_attempt: Make, dead: Owner, sleeper: Callable[[str], Any]
) -> None:
    attempt = make_attempt(owner=dead)
    started_by(attempt, dead.pid)
    left = sleeper(attempt.attempt_id)
    assert recover(attempt, 0.0).seconds > 0.0
    assert processes.start_ticks(left.pid) is None


def test_a_supervisor_that_does_not_end_is_killed_after_the_wait(
    make_attempt: Make, dead: Owner, sleeper: Callable[[str], Any]
) -> None:
    attempt = make_attempt(owner=dead)
    started_by(attempt, sleeper("of another").pid)
    with (attempt.directory / api.LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = recover(attempt, 0.1)
    started = api.read(api.Started, attempt.directory)
    assert started is not None
    assert processes.start_ticks(started.pid) is None
    assert found.cause == "its supervisor is alive, perhaps elsewhere"
    assert found.seconds > 0.0


def test_an_abandoned_attempt_is_ended_once_and_for_all(make_attempt: Make) -> None:
    attempt = make_attempt()
    ended = end_if_abandoned(attempt, 2.0)
    assert ended is not None
    assert (ended.status, ended.seconds) == (Status.LOST, 2.0)
    assert end_if_abandoned(attempt, 9.0) == ended
