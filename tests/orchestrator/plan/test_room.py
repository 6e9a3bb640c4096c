"""What a run takes of a disk, held against what it took."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from budgets.ledger import LEAST_FREE_BYTES
from orchestrator.plan.times import (
    BLOCK,
    EVALUATION_BYTES,
    bytes_of_evaluations,
    free_bytes,
    room,
)
from orchestrator.records.recorded import Result, load_state


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]) -> Path:
    return run_search(tmp_path_factory.mktemp("run")).directory


def test_a_run_takes_what_was_foretold_of_its_ledger_and_reports(run: Path) -> None:
    found = room(load_state(run).plan, run.parent, None)
    ledger = (run / "ledger.jsonl").stat().st_size
    assert found.ledger == pytest.approx(ledger, rel=0.5)
    files = [*(run / "reports").iterdir(), run / "progress.csv", run / "metrics.jsonl"]
    assert found.reports == pytest.approx(sum(f.stat().st_size for f in files), rel=0.5)


def test_evaluations_take_what_the_calibrations_did(run: Path) -> None:
    plan = load_state(run).plan
    found, above = room(plan, run.parent, 10_000), (2 + 16) * BLOCK
    assert found.measured
    assert found.evaluations == 16 * 10_000 + above
    assumed = room(plan, run.parent, None)
    assert not assumed.measured
    assert assumed.evaluations == 16 * EVALUATION_BYTES + above
    assert found.needed == found.evaluations + found.ledger + found.reports + LEAST_FREE_BYTES


def test_an_evaluations_directory_is_measured_in_whole_blocks(tmp_path: Path) -> None:
    for seed in (1, 2):
        place = tmp_path / f"eval/gen_0000/cand_0000/seed_{seed}"
        place.mkdir(parents=True)
        (place / "config.json").write_bytes(b"x" * 5000)
    found = bytes_of_evaluations(tmp_path)
    assert found is not None
    assert found % 512 == 0
    assert found >= 5000
    for path in (tmp_path / "eval").rglob("config.json"):
        with path.open("ab") as file:
            file.write(b"x" * 8192)
            os.fsync(file.fileno())
    assert bytes_of_evaluations(tmp_path) == found + 8192


def test_directories_that_seeds_share_are_no_part_of_an_evaluation(tmp_path: Path) -> None:
    for seed in (1, 2):
        place = tmp_path / f"eval/gen_0000/cand_0000/seed_{seed}"
        place.mkdir(parents=True)
        (place / "config.json").write_bytes(b"x")
    found = bytes_of_evaluations(tmp_path)
    (tmp_path / "eval/gen_0000/cand_0001").mkdir()
    (tmp_path / "eval/gen_0000/beside").write_bytes(b"x" * 100_000)
    assert bytes_of_evaluations(tmp_path) == found


def test_nothing_is_known_of_evaluations_that_left_no_files(tmp_path: Path) -> None:
    assert bytes_of_evaluations(tmp_path) is None


def test_free_is_what_the_nearest_directory_has_that_is_there(tmp_path: Path) -> None:
    free = free_bytes(tmp_path / "not/there/yet")
    assert free is not None
    assert free > 0
