"""`python -m orchestrator`, wherever it is typed."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.formatting import PROGRAM

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_project(command: Callable[..., Any]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert command("--version").out == f"orchestrator {version}\n"


@pytest.mark.parametrize("name", ["objectives.py", "budgets/__init__.py", "numpy.py"])
def test_a_file_of_the_users_is_not_taken_for_one_of_ours(tmp_path: Path, name: str) -> None:
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("raise SystemExit('the user has this')\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, *PROGRAM.split()[1:], "explain", "--objective", "sphere"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
