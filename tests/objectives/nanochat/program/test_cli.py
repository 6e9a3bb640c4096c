"""The command line in processes of its own; each takes seconds, so there are few."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from objectives.nanochat.program.cli import app, main
from objectives.nanochat.program.store import read_manifest

COMMAND = [sys.executable, "-m", "objectives.nanochat"]
Assignments = Callable[..., list[str]]


def start(arguments: list[str], cwd: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def setting(assignments: list[str]) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


def in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that trains nothing."""
    monkeypatch.setattr(sys, "argv", ["nanochat", *arguments])
    with pytest.raises(SystemExit) as leaving:
        main()
    shown = capsys.readouterr()
    return int(leaving.value.code or 0), shown.out, shown.err


def wait_for(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def saved(directory: Path) -> int:
    """The last step saved."""
    manifest = read_manifest(directory)
    return manifest.checkpoints[-1].step if manifest and manifest.checkpoints else 0


def test_kill_9_then_sigterm_then_the_same_command_ends_as_if_nothing_had_happened(
    assignments: Assignments, train: Any, tmp_path: Path
) -> None:
    long = {"num_batches": 100, "save_interval_steps": 5, "eval_interval_steps": 30}
    directory = tmp_path / "killed"
    command = ["train", *setting(assignments(directory, **long))]

    killed = start(command, tmp_path)
    wait_for(lambda: saved(directory) >= 10)
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    at = saved(directory)
    assert 10 <= at < 100

    stopped = start(command, tmp_path)
    wait_for(lambda: saved(directory) >= at + 5)
    stopped.send_signal(signal.SIGTERM)
    out, err = stopped.communicate(timeout=60)
    assert stopped.returncode == 128 + signal.SIGTERM
    assert "Going on from step-" in out
    assert "Stopped. Repeat the command to go on." in err
    assert saved(directory) < 100

    resumed, _ = train(directory, **long)
    whole, _ = train(tmp_path / "whole", **long)
    assert resumed["evaluations"] == whole["evaluations"]
    assert resumed["health"] == whole["health"]
    one, other = (
        torch.load(path / "step-00000100.pt", weights_only=True)["trainer"]
        for path in (directory, tmp_path / "whole")
    )
    assert torch.equal(one["losses"], other["losses"])
    assert all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"])


def test_help_names_what_there_is() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ("train", "check", "flops", "explain"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--set", "n_emb=3"], "Did you mean 'n_embd'"),
        (["explain", "--preset", "quik"], "Did you mean 'quick'"),
        (["flops", "--set", "n_embd=wide"], "n_embd"),
        (["train", "--set", "data=not-there.txt"], "not-there.txt"),
        (["explain", "--config", "not-there.toml"], "not-there.toml cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = in_process(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not list(tmp_path.iterdir())


def test_a_dry_run_explains_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    assignments: Assignments,
    tmp_path: Path,
) -> None:
    arguments = setting(assignments(tmp_path / "new"))
    code, dry, _ = in_process(monkeypatch, capsys, "train", "--dry-run", *arguments)
    assert code == 0
    assert not list(tmp_path.iterdir())
    _, explained, _ = in_process(monkeypatch, capsys, "explain", *arguments)
    assert dry == explained
    for line in (
        "n_embd                       16                        --set",
        "n_head                       1                         default",
        "steps            12: num_batches decides (--set)",
        "effective batch  4 sequences, 256 tokens per step",
    ):
        assert line in dry


@pytest.mark.parametrize("command", ["explain", "flops", "check"])
def test_json_is_one_document(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    assignments: Assignments,
    tmp_path: Path,
    command: str,
) -> None:
    arguments = setting(assignments(tmp_path / "new"))
    code, out, err = in_process(monkeypatch, capsys, command, "--json", *arguments)
    assert (code, err) == (0, "")
    keys = {"explain": "settings", "flops": "per_token", "check": "findings"}
    assert keys[command] in json.loads(out)
    code, out, _ = in_process(monkeypatch, capsys, command, "--json", "--set", "n_emb=3")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)


def test_a_check_that_finds_something_missing_exits_with_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    assignments: Assignments,
    tmp_path: Path,
) -> None:
    arguments = setting(assignments(tmp_path / "new", data=str(tmp_path / "none.txt")))
    code, out, _ = in_process(monkeypatch, capsys, "check", *arguments)
    assert code == 2
    assert "missing  data" in out


def test_explaining_does_not_need_the_text_unless_it_says_how_long_to_train(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gone = ("--set", f"data={tmp_path / 'none.txt'}")
    code, out, _ = in_process(monkeypatch, capsys, "explain", *gone)
    assert code == 0
    assert "no epochs without the text" in out
    code, _, err = in_process(monkeypatch, capsys, "explain", *gone, "--set", "num_epochs=1")
    assert code == 2
    assert "num_epochs" in err


@pytest.mark.parametrize("words", [("nope",), ("flops", "extra"), ("train", "--set")])
def test_a_command_line_that_is_not_understood_is_one_line(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, error = in_process(monkeypatch, capsys, *words)

    assert (code, out) == (2, "")
    assert error.startswith("error: ")
    assert error.endswith(". See: python -m objectives.nanochat --help\n")
    assert error.count("\n") == 1
