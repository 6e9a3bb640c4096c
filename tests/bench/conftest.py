"""The programs of scripts/bench, called in this process."""

import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "scripts/bench"


@dataclass
class Ended:
    code: object
    out: str
    err: str


Bench = Callable[..., Ended]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Bench:
    """`scripts/bench/NAME ARGUMENTS`."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(sys, "path", sys.path.copy())

    def run(name: str, *arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", [str(BENCH / name), *arguments])
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code: object = 0
        except SystemExit as ending:
            code = ending.code or 0
        return Ended(code, *capfd.readouterr())

    return run
