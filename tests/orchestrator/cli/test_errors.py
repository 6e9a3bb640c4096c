"""What goes wrong is one line that names flag or file, before anything is written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.storage import write_aside

Command = Callable[..., Any]

SPHERE = ("--objective", "sphere", "--executor", "inline", "--workers", "1")
SEARCH = ("phase1", "--tier", "min", *SPHERE, "--assume-eval-seconds", "1")
FIT = ("plan", *SPHERE, "--assume-eval-seconds", "5", "--fit")
RUN = "min-sphere-s1"
NO_SUCH = "nowhere is no directory: make it, or name another place"


def everything(place: Path) -> dict[Path, bytes]:
    files = (path for path in place.rglob("*") if path.name != "ledger.lock")
    return {path: path.read_bytes() if path.is_file() else b"" for path in files}


def assert_refused(answer: Any, said: str, code: int = 2) -> None:
    assert answer.code == code, answer
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert said in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*SEARCH, "--window", "0h"), "--window: expected more than no time, got '0h'"),
        ((*SEARCH, "--window", "99999999d"), "--window: expected at most 100000h, got '99999999d'"),
        (
            (*SEARCH, "--window", "12h", "--set", "budget.safety_margin=99999d"),
            "budget.safety_margin: expected at most 100000h",
        ),
        (("phase1", "--tier", "min", *SPHERE, "--override", "crash", "--reason", "x"), "expected"),
        (("calibrate", *SPHERE, "--override", "crash", "--reason", "x"), "--override crash: expec"),
        (
            (*SEARCH, "--set", "backend.max_concurrent=2", "--set", "backend.slots_dir=file"),
            "backend.slots_dir: cannot use",
        ),
        (("plan", "--address", "head"), "--address: expected HOST:PORT such as"),
        ((*SEARCH, "--preset", "quick"), "--preset: 'sphere' has no presets, got 'quick'"),
        ((*FIT, "--window", "2020-01-01T00:00"), "--window: expected a moment more than 1800 s"),
        ((*FIT, "--window", "12h", "--out", "nowhere/x.toml"), f"--out: {NO_SUCH}"),
        ((*FIT, "--window", "12h", "--out", "."), "--out: . is a directory: name a file"),
        (("init", "--template", "smoke", "--out", "nowhere/x.toml"), f"--out: {NO_SUCH}"),
        (("check", "proxy", *SPHERE, "--fraction", "0"), "--fraction: expected a number between"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_said_by_the_flag_it_is_in_and_nothing_is_written(
    arguments: tuple[str, ...], said: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "odd/history.jsonl").mkdir(parents=True)
    (tmp_path / "file").write_text("in the way")
    before = everything(tmp_path)

    assert_refused(command(*arguments), said)

    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "table", RUN, "--out", ""), "--out: . is a directory: name a file in it"),
        (("export", "table", RUN, "--out", "nowhere/x.csv"), f"--out: {NO_SUCH}"),
        (("report", RUN, "--png", "wrong"), "or all, got 'wrong'\n"),
        (("amend", RUN, "--max-hours", "3", "--reason", "a\nb"), "expected one printable line"),
        (("amend", RUN, "--max-evals", "2", "--reason", "x"), "and these caps pay for 1 alone"),
        (("amend", RUN, "--max-cost", "2", "--reason", "x"), "amend: the run "),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
def test_a_mistake_about_a_run_leaves_it_as_it_was(
    arguments: tuple[str, ...], said: str, run: Path, command: Command, tmp_path: Path
) -> None:
    before = everything(tmp_path)

    assert_refused(command(*arguments), said)

    assert everything(tmp_path) == before


def test_a_file_that_cannot_be_written_is_called_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        write_aside(tmp_path / "nowhere/x", b"")

    assert raised.value.filename == str(tmp_path / "nowhere/x")


def test_a_run_that_this_user_may_not_read_is_not_said_to_be_missing(
    run: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.rename(run / "ledger.jsonl", run / "hidden")  # as it is to one who may not look into it
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != RUN)

    assert_refused(command("status", RUN), f"{RUN}: Permission denied. Give this user access", 8)
