"""The command line, with what needs no peer."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/bench/search"


def bench(*given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *given],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_fills_its_folder_once_and_reports_from_it(tmp_path: Path) -> None:
    given = ["--out", str(tmp_path), "--tiers", "min", "--suite", "held-out", "--seeds", "1"]
    given += ["--only", "ours", "pycma", "default", "--functions", "kinks"]
    first = bench(*given)
    assert first.returncode == 0, first.stderr
    assert "| ours | 4 |" in first.stdout
    assert "12 of 12 runs" in first.stderr
    assert "share of the spend for pycma's result" in first.stdout
    again = bench(*given)
    assert "runs," not in again.stderr
    assert again.stdout == first.stdout
    assert bench(*given, "--report").stdout == first.stdout
    assert "| min: ours over the best peer, pycma | " in first.stdout


def test_it_says_what_it_expects(tmp_path: Path) -> None:
    wrong = bench("--out", str(tmp_path), "--seeds", "0")
    assert wrong.returncode == 2
    assert "--seeds: expected 1 or more, got 0" in wrong.stderr
