"""`python -m orchestrator`, wherever it is typed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from budgets.formatting import PROGRAM

ROOT = Path(__file__).parents[2]


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
