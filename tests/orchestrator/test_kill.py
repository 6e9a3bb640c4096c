"""A run that is ended by a signal, whose reader leaves, or that begins among odd files."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Settled
from tests.conftest import Cli
from tests.ledgers import every, wait_for_records

pytestmark = pytest.mark.xdist_group("ray")
Found = Callable[[Path], dict[str, Any]]


def phase1(seconds: float, root: str) -> tuple[str, ...]:
    options = ("--tier", "min", "--workers", "2", "--executor", "local", "--runs-dir", root)
    objective = ("--objective", "sphere", "--set", f"seconds={seconds}")
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


def test_a_drain_that_takes_too_long_is_ended_by_its_limit(cli: Cli, found: Found) -> None:
    run = cli.cwd / "drained/phase1/run"
    command = (*phase1(60, "drained"), "--set", "backend.drain_seconds=3")
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


def test_a_reader_who_leaves_does_not_stop_the_run(cli: Cli, found: Found) -> None:
    process = cli.start(*phase1(0.1, "unread"))
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")
    assert found(cli.cwd / "unread/phase1/run")["evaluations"] == (16, 0)


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
