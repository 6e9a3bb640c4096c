"""`kill -9`, run the command again: the same run. With real processes and real signals."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.events import Settled
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from tests.conftest import Cli
from tests.ledgers import every, wait_for_records

pytestmark = pytest.mark.xdist_group("ray")
Found = Callable[[Path], dict[str, Any]]
SPHERE = ("--objective", "sphere", "--set", "noise=0.01", "--set", "seconds=0.1")
SHAPE = ("--set", "n_layer=1", "--set", "n_embd=16", "--set", "sequence_len=64")
TINY = ("--objective", "nanochat", *SHAPE, "--set", "target_flops=3e8", "--set", "val_windows=8")


Whole = Callable[[tuple[str, ...]], Path]


def phase1(objective: tuple[str, ...], executor: str, root: str) -> tuple[str, ...]:
    options = ("--tier", "min", "--workers", "2", "--executor", executor, "--runs-dir", root)
    return ("phase1", *options, *objective, "--run-id", "run", "--assume-eval-seconds", "5")


def alive_below(directory: Path) -> list[int]:
    """Processes whose working directory lies there: every evaluation's does."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                cwd = (entry / "cwd").readlink()
            except OSError:
                continue
            if cwd.is_relative_to(directory / "eval"):
                found.append(int(entry.name))
    return found


def seconds_until_gone(directory: Path) -> float:
    began = time.monotonic()
    while alive_below(directory) and time.monotonic() - began < 30:
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Whole:
    """Runs that nobody killed, evaluated in the process of these tests; each made once."""
    made: dict[tuple[str, ...], Path] = {}

    def run(objective: tuple[str, ...]) -> Path:
        if objective not in made:
            assignments = (word.split("=") for word in objective if "=" in word)
            made[objective] = run_search(
                tmp_path_factory.mktemp("whole"),
                objective[1],
                {name: orjson.loads(value) for name, value in assignments},
                Engine(kind="inline", workers=2),
                assumed_seconds=5.0,
                run_id="run",
            ).directory
        return made[objective]

    return run


def test_the_first_interrupt_lets_running_evaluations_finish(cli: Cli, found: Found) -> None:
    run = cli.cwd / "stopped/phase1/run"
    command = phase1(SPHERE, "local", "stopped")
    process = cli.start(*command)
    wait_for_records(process, run, 8)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Repeat the command to go on" in output
    settled = every(Settled, run)
    assert {str(event.status) for event in settled} == {"ok"}
    assert found(run)["open"] == 0
    assert cli.run(*command).returncode == 0


def test_a_drain_that_takes_too_long_is_ended_by_its_limit(cli: Cli, found: Found) -> None:
    run = cli.cwd / "drained/phase1/run"
    slow = ("--objective", "sphere", "--set", "seconds=60")
    command = (*phase1(slow, "local", "drained"), "--set", "backend.drain_seconds=3")
    process = cli.start(*command)
    wait_for_records(process, run, 5)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)

    assert process.returncode == 128 + signal.SIGTERM
    assert 3.0 < time.monotonic() - began < 20
    assert "Repeat the command to go on" in output
    settled = every(Settled, run)
    assert [str(event.status) for event in settled] == ["cancelled"] * 2
    assert all(0 < event.charged_ms < 30_000 for event in settled)
    assert found(run)["open"] == 0
    assert seconds_until_gone(run) < 5

    resumed = cli.start(*command)
    wait_for_records(resumed, run, 10)
    resumed.send_signal(signal.SIGTERM)
    resumed.communicate(timeout=30)
    assert found(run)["evaluations"] == (0, 0)
    attempts = every(Settled, run)
    assert sorted(event.attempt for event in attempts) == [1, 1, 2, 2]


def test_a_reader_who_leaves_does_not_stop_the_run(cli: Cli, found: Found, whole: Whole) -> None:
    process = cli.start(*phase1(SPHERE, "local", "unread"))
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")
    assert found(cli.cwd / "unread/phase1/run") == found(whole(SPHERE))


SEARCH = (
    *("phase1", "--tier", "min", "--objective", "ellipsoid", "--executor", "inline"),
    *("--workers", "1", "--assume-eval-seconds", "1"),
)


def test_what_lies_about_in_the_working_directory_is_ignored_and_nothing_is_added(cli: Any) -> None:
    stray = {
        "cma_signals.in": "{'timeout': 0, 'maxiter': 1}",
        "outcmaes/axlen.dat": "old",
        "numpy.py": "raise SystemExit('imported from the working directory')",
        ".env": "ORCHESTRATOR=1",
        "conftest.py": "",
    }
    for name, text in stray.items():
        (cli.cwd / name).parent.mkdir(exist_ok=True)
        (cli.cwd / name).write_text(text)
    code = (  # as the installed command does: the working directory is not on the path
        "import sys; sys.modules['matplotlib'] = None; sys.path.remove('')\n"
        "from orchestrator.cli.app import main; main()"
    )

    answer = subprocess.run(
        [sys.executable, "-W", "default", "-c", code, *SEARCH],
        cwd=cli.cwd,
        env=cli.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    files = {str(p.relative_to(cli.cwd)) for p in cli.cwd.rglob("*") if p.is_file()}
    assert {name for name in files if not name.startswith("artifacts/")} == set(stray)
    assert {name: (cli.cwd / name).read_text() for name in stray} == stray
