"""The command line of scripts/bench/search, with contenders that need no extra package."""

from pathlib import Path

from tests.bench.conftest import Bench


def test_results_are_stored_once_and_reported(bench: Bench, tmp_path: Path) -> None:
    options = ["search", "--out", str(tmp_path), "--tiers", "min", "--suite", "held-out"]
    options += ["--seeds", "1", "--only", "ours", "pycma", "default", "--functions", "kinks"]
    first = bench(*options)
    assert first.code == 0, first.err
    assert "| ours | 4 |" in first.out
    assert "12 of 12 runs" in first.err
    assert "spend for pycma's result" in first.out
    again = bench(*options)
    assert "runs," not in again.err
    assert again.out == first.out
    assert bench(*options, "--report").out == first.out
    assert "| min: ours over the best peer, pycma | " in first.out
