"""How evaluations of programs end under a supervisor: their status, their logs, what is left."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from budgets.plan import Limits
from objectives.command.objective import CommandObjective
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt, Outcome, Slots
from orchestrator.execution.files import STARTED, Started, read
from orchestrator.execution.local import LocalExecutor
from tests.objectives.processes import is_running

Make = Callable[..., CommandObjective]
Start = Callable[..., Attempt]
Finish = Callable[..., Outcome]

PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    preload = ("objectives.command.objective",)
    with LocalExecutor(Slots(1, "cpu", "some processor", 1), preload) as executor:
        yield executor


numbers = count()


@pytest.fixture
def start(executor: LocalExecutor, make: Make, tmp_path: Path) -> Start:
    """Begins an evaluation of a program."""

    def submit(program: str, limits: dict[str, float] | None = None, **settings: Any) -> Attempt:
        attempt = Attempt(
            attempt_id=f"{tmp_path.name}-{next(numbers)}",
            directory=tmp_path / "evaluation",
            objective=make(program, **settings).spec,
            knobs={"lr": 0.01},
            seed=7,
            limits=Limits(
                **{"wall_seconds": PATIENCE_SECONDS, "grace_seconds": 0.2, **(limits or {})}
            ),
            owner=processes.this_owner(),
        )
        attempt.directory.mkdir()
        executor.submit(attempt)
        return attempt

    return submit


@pytest.fixture
def finish(executor: LocalExecutor, start: Start) -> Finish:
    """Evaluates a program to its end."""

    def evaluate(program: str, **settings: Any) -> Outcome:
        attempt = start(program, **settings)
        (outcome,) = executor.wait(PATIENCE_SECONDS)
        assert outcome.attempt_id == attempt.attempt_id
        return outcome

    return evaluate


PROGRAMS: dict[str, tuple[str, dict[str, Any], Status, str]] = {
    "a score": ("print('score: 0.5')", {}, Status.OK, ""),
    "a nan": ("print('score: nan')", {}, Status.NAN, "the score is nan"),
    "declared": ("print('boom')", {"failures": {"boom": "nan"}}, Status.NAN, "it said 'boom'"),
    "memory": ("raise MemoryError", {}, Status.OOM, "exited with status 1: MemoryError"),
    "a failure": ("import sys; sys.exit('bye')", {}, Status.ERROR, "exited with status 1: bye"),
    "a crash": ("import os; os.abort()", {}, Status.ERROR, "killed by signal 6 SIGABRT"),
    "no score": ("print('bye')", {}, Status.ERROR, "NoScoreError: no score: the program exited"),
    "missing": ("", {"argv": ["./missing"]}, Status.ERROR, "SetupError: cannot start './missing'"),
    "too slow": (
        "import time; time.sleep(600)",
        {"limits": {"wall_seconds": 0.3}},
        Status.TIMEOUT,
        "ran over 0.3 s",
    ),
    "stalled": (
        "import time; time.sleep(600)",
        {"limits": {"stall_seconds": 0.3}},
        Status.TIMEOUT,
        "stalled",
    ),
    "too large": (
        "x = 'x' * (1 << 28); import time; time.sleep(600)",
        {"limits": {"memory_bytes": 200 << 20}},
        Status.OOM,
        "MiB of 200 MiB",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_end_has_its_status(name: str, finish: Finish) -> None:
    program, settings, status, cause = PROGRAMS[name]
    outcome = finish(program, **settings)
    assert (outcome.status, cause in outcome.cause) == (status, True), outcome.cause
    assert (outcome.measurement is not None) == (name in ("a score", "a nan"))


CLEARS = """
import os, shutil, sys
shutil.rmtree(sys.argv[1])
os.makedirs(sys.argv[1])
print('score: 1')
"""


def test_a_program_may_make_its_directory_anew(finish: Finish) -> None:
    outcome = finish(CLEARS, argv=[sys.executable, "-c", CLEARS, "{directory}"])
    assert (outcome.status, outcome.cause) == ("ok", "")


def test_its_output_and_what_was_started_are_kept(finish: Finish, tmp_path: Path) -> None:
    outcome = finish("import sys; print('score: 0.5'); print('hm', file=sys.stderr)")
    directory = tmp_path / "evaluation"
    assert outcome.measurement is not None
    assert outcome.measurement.score == 0.5
    assert (directory / "stdout.txt").read_text() == "score: 0.5\n"
    assert (directory / "stderr.txt").read_text() == "hm\n"
    noted = json.loads((directory / "program.json").read_text())
    assert noted["argv"][-2:] == ["lr=0.01", "seed=7"]
    assert noted["environment"]["ATTEMPT_ID"] == noted["attempt_id"] == outcome.attempt_id
    beat = json.loads((directory / "metrics.jsonl").read_text().splitlines()[-1])
    assert beat["score"] == 0.5


def test_the_last_lines_are_repeated_where_no_score_is_found(
    finish: Finish, tmp_path: Path
) -> None:
    finish("print('hello\\nbye')")
    log = (tmp_path / "evaluation/stderr.txt").read_text()
    assert log.endswith("Its last 2 lines:\nhello\nbye\n")


def test_a_log_without_an_end_is_capped(finish: Finish, tmp_path: Path) -> None:
    program = "for n in range(20_000): print('x' * 100)\nprint('score: 1')"
    outcome = finish(program, limits={"log_bytes": 10_000})
    assert outcome.status is Status.OK
    assert outcome.log_bytes_dropped > 1_000_000
    assert (tmp_path / "evaluation/stdout.txt").stat().st_size < 20_000


SLEEPER = """
import os, time
if {leaves}:
    if os.fork():
        while not os.path.exists("pid"): pass
        print("score: 1", flush=True)
        os._exit(0)
    os.setsid()
open("aside", "w").write(str(os.getpid()))
os.rename("aside", "pid")
time.sleep(600)
"""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_process_that_it_leaves_behind_is_gone_at_the_end(finish: Finish, place: Path) -> None:
    assert finish(SLEEPER.format(leaves=True)).status is Status.OK
    assert not is_running(int((place / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows a process's environment")
def test_it_is_found_and_ended_when_its_supervisor_was_killed(
    executor: LocalExecutor, start: Start, place: Path
) -> None:
    attempt = start(SLEEPER.format(leaves=False))
    until((place / "pid").exists)
    program = int((place / "pid").read_text())
    supervisor = read(Started, attempt.directory / STARTED)
    assert supervisor is not None

    os.kill(supervisor.pid, signal.SIGKILL)
    (outcome,) = executor.wait(PATIENCE_SECONDS)

    assert outcome.status is Status.LOST
    until(lambda: not is_running(program))


@pytest.mark.slow
def test_a_silent_program_that_computes_outlives_the_limit_on_silence(finish: Finish) -> None:
    program = "import time\nend = time.monotonic() + 14\nwhile time.monotonic() < end: pass"
    outcome = finish(f"{program}\nprint('score: 1')", limits={"stall_seconds": 8.0})
    assert outcome.status is Status.OK, outcome.cause
