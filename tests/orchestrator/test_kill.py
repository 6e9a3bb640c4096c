"""`kill -9`, run the command again: the same run. With real processes and real signals."""

import os
import signal
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
from tests.ledgers import events_of, every, wait_for_records

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


def kill_at(cli: Cli, command: tuple[str, ...], run: Path, records: int) -> None:
    cli.kill_at(run, records, *command)
    assert seconds_until_gone(run) < 5


def assert_nothing_was_settled_twice(run: Path) -> None:
    events = events_of(run)
    final = [e for e in events if isinstance(e, Settled) and e.status.final]
    attempts = [e for e in events if isinstance(e, Settled)]
    assert len({(e.generation, e.candidate, e.seed) for e in final}) == len(final) == 16
    assert len({(e.generation, e.candidate, e.seed, e.attempt) for e in attempts}) == len(attempts)


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


def test_a_kill_that_comes_after_the_end_counts_as_none(cli: Cli) -> None:
    with pytest.raises(AssertionError, match="over before it was killed"):
        kill_at(cli, ("--version",), cli.cwd / "run", 10**9)


@pytest.mark.slow
def test_a_check_killed_again_and_again_finds_what_an_uninterrupted_one_does(
    cli: Cli, found: Found
) -> None:
    options = ("--objective", "idle", "--set", "dimension=2", "--set", "seconds=0.1")
    command = ("check", "knobs", *options, "--set", "noise=0.01", "--seeds", "3", "--workers", "2")
    assert cli.run(*command, "--executor", "inline", "--runs-dir", "whole").returncode == 0
    (whole,) = (cli.cwd / "whole/check").iterdir()
    run = cli.cwd / "killed/check" / whole.name
    for records in (1, 5, 12, 25):
        kill_at(cli, (*command, "--executor", "local", "--runs-dir", "killed"), run, records)

    resumed = cli.run(*command, "--executor", "local", "--runs-dir", "killed", "--json")

    assert resumed.returncode == 0, resumed.stderr
    assert found(run) == found(whole)
    document = orjson.loads((whole / "check.json").read_bytes())["check"]
    assert orjson.loads(resumed.stdout)["check"] == document
    assert {f["verdict"] for f in document["knobs"]} == {"alive", "dead"}
    assert cli.run("verify", str(run)).returncode == 0


@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(SPHERE, id="sphere"),
        pytest.param(TINY, id="real training", marks=pytest.mark.slow),
    ],
)
def test_a_run_on_ray_killed_mid_generation_ends_like_one_that_never_was(
    cli: Cli, found: Found, whole: Whole, objective: tuple[str, ...]
) -> None:
    run = cli.cwd / "killed/phase1/run"
    (cli.cwd / "objectives.py").write_text("raise SystemExit('this is not the package')\n")
    command = phase1(objective, "ray", "killed")
    kill_at(cli, command, run, 10)

    resumed = cli.run(*command)

    assert resumed.returncode == 0, resumed.stderr
    assert found(run)["generations"] == found(whole(objective))["generations"]
    assert best(run) == best(whole(objective))
    assert_nothing_was_settled_twice(run)
    assert cli.run("verify", str(run)).returncode == 0


def best(run: Path) -> Any:
    document = orjson.loads((run / "best.json").read_bytes())
    return document["recommendation"], document["winner"]


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


def test_the_second_interrupt_kills_them_and_charges_what_they_used(cli: Cli, found: Found) -> None:
    run = cli.cwd / "stopped/phase1/run"
    slow = ("--objective", "sphere", "--set", "seconds=60")
    process = cli.start(*phase1(slow, "local", "stopped"))
    wait_for_records(process, run, 5)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    assert any("interrupt again" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)

    assert process.returncode == 128 + signal.SIGTERM
    settled = every(Settled, run)
    assert {str(event.status) for event in settled} == {"cancelled"}
    assert all(0 < event.charged_ms < 30_000 for event in settled)
    assert found(run)["open"] == 0
    assert seconds_until_gone(run) < 5


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


def test_status_sees_a_run_it_does_not_own(cli: Cli) -> None:
    run = cli.cwd / "watched/phase1/run"
    slow = ("--objective", "sphere", "--set", "seconds=60")
    process = cli.start(*phase1(slow, "local", "watched"))
    wait_for_records(process, run, 5)

    running = orjson.loads(cli.run("status", str(run), "--json").stdout)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    dead = orjson.loads(cli.run("status", str(run), "--json").stdout)

    assert (running["standing"], dead["standing"]) == ("running", "interrupted")
    assert seconds_until_gone(run) < 5


@pytest.mark.slow
def test_a_phase_2_killed_again_and_again_ends_like_one_that_never_was(
    cli: Cli, found: Found
) -> None:
    assert cli.run(*phase1(SPHERE, "inline", "runs")).returncode == 0
    source = ("--variant", "robust", "--from", "run", "--override", "go", "--reason", "a test")
    options = ("--tier", "min", "--max-evals", "48", "--runs-dir", "runs", "--workers", "2")
    command = ("phase2", *source, *options, *SPHERE, "--assume-eval-seconds", "5")
    undisturbed = cli.run(*command, "--executor", "inline", "--run-id", "whole")
    assert undisturbed.returncode == 0, undisturbed.stderr

    run = cli.cwd / "runs/phase2/killed"
    killed = (*command, "--executor", "local", "--run-id", "killed")
    for records in (1, 2, 3, 7, 50, 80, 110, 140):
        kill_at(cli, killed, run, records)
    assert cli.run(*killed).returncode == 0

    whole = found(cli.cwd / "runs/phase2/whole")
    assert found(run)["generations"] == whole["generations"]
    assert cli.run("verify", str(run)).returncode == 0
