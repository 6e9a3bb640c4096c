"""Questions that another process answers."""

import os
from pathlib import Path

import pytest

from orchestrator.doctor.asking import Asked, NoAnswerError
from orchestrator.execution import processes

PROGRAMS = {
    "echoes": "import json, sys\nprint(json.dumps({'heard': json.load(sys.stdin)}))",
    "says": "print('first')\nprint('{\"a\": 1}')",
    "mumbles": "print('no json')",
    "lists": "print('[1]')",
    "dies": "import sys\nsys.exit('torch is broken')",
    "sleeps": "import time\ntime.sleep(600)",
    "tidies": (
        "import pathlib, sys, time\npath = pathlib.Path(sys.argv[1])\n"
        "try:\n    path.write_text('')\n    time.sleep(600)\nfinally:\n    path.unlink()"
    ),
}


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, code in PROGRAMS.items():
        (tmp_path / f"probe_{name}.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


def asked(name: str, *arguments: str, limit_seconds: float = 60.0) -> Asked:
    return Asked(f"probe_{name}", *arguments, limit_seconds=limit_seconds)


def test_the_last_line_is_the_answer() -> None:
    with asked("says") as ask:
        assert ask() == {"a": 1}


def test_what_is_said_is_heard_however_long_it_is() -> None:
    long = ["x" * 200_000]
    with Asked("probe_echoes", limit_seconds=60.0, said=long) as ask:
        assert ask() == {"heard": long}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mumbles", "ended with 0"),
        ("lists", "expected a JSON object"),
        ("dies", "ended with 1: torch is broken"),
        ("none", "No module named"),
    ],
)
def test_what_is_no_answer_says_why(name: str, words: str) -> None:
    with asked(name) as ask, pytest.raises(NoAnswerError, match=words):
        ask()


def test_after_the_limit_it_is_ended() -> None:
    before = processes.descendants(os.getpid())
    with asked("sleeps", limit_seconds=0.2) as ask, pytest.raises(NoAnswerError, match=r"0\.2 s"):
        ask()
    assert processes.descendants(os.getpid()) == before


def test_who_is_not_asked_any_more_is_ended() -> None:
    before = processes.descendants(os.getpid())
    with asked("sleeps"):
        assert len(processes.descendants(os.getpid())) == len(before) + 1
    assert processes.descendants(os.getpid()) == before


def test_an_end_before_time_lets_it_clean_up(tmp_path: Path) -> None:
    left = tmp_path / "half_written"
    with asked("tidies", str(left)):
        while not left.exists():
            os.sched_yield()
    assert not left.exists()
