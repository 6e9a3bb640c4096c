"""The command line of scripts/bench/search, with contenders that need no extra package."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/bench/search"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_results_are_stored_once_and_reported(tmp_path: Path) -> None:
    options = ["--out", str(tmp_path), "--tiers", "min", "--suite", "held-out", "--seeds", "1"]
    options += ["--only", "ours", "pycma", "default", "--functions", "kinks"]
    first = bench(*options)
    assert first.returncode == 0, first.stderr
    assert "| ours | 4 |" in first.stdout
    assert "12 of 12 runs" in first.stderr
    assert "spend for pycma's result" in first.stdout
    again = bench(*options)
    assert "runs," not in again.stderr
    assert again.stdout == first.stdout
    assert bench(*options, "--report").stdout == first.stdout
    assert "| min: ours over the best peer, pycma | " in first.stdout
