"""A campaign whose cells are runs of their own, some of which nobody has begun."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.look.board import Board, find_board
from orchestrator.records.recorded import Result

Train = Callable[..., Result]
NOW = datetime.now(UTC)

RUNS = [
    {"name": f"{c}_s{seed}", "directory": f"{c}_s{seed}", "condition": c, "seed": seed,
     "control": c.endswith("_base"), "levels": {} if c.endswith("_base") else {"rank": c[4:]}}
    for c in ("rank4", "rank64", "default_base")
    for seed in (1, 2)
]  # fmt: skip


def written(directory: Path, **fields: Any) -> Path:
    """A directory with the manifest of an export, as another program writes it."""
    directory.mkdir()
    document = {
        "name": "ranks",
        "kind": "slurm",
        "total_runs": len(RUNS),
        "conditions": ["rank4", "rank64", "default_base"],
        "seeds": [1, 2],
        "runs": RUNS,
        "files": {"submit_all.sh": "0" * 64},
        **fields,
    }
    (directory / "manifest.json").write_bytes(orjson.dumps(document))
    return directory


def board_of(directory: Path, now: datetime = NOW) -> Board:
    board = find_board(str(directory), directory.parent, now)
    assert board is not None
    return board


def test_runs_that_nobody_has_begun_are_pending(tmp_path: Path) -> None:
    board = board_of(written(tmp_path / "ranks"))
    assert board.matrix.counts == {"pending": 6}
    assert board.whose == "0 of 6 runs running"
    assert board.sentence == "0 of 6 runs settled."


def test_levels_and_controls_are_those_of_the_manifest(tmp_path: Path) -> None:
    terms = board_of(written(tmp_path / "ranks")).matrix.terms
    assert [(f.name, f.levels) for f in terms.factors] == [("rank", ("4", "64"))]
    assert [c.name for c in terms.conditions if c.control] == ["default_base"]
    assert terms.seeds == (1, 2)


def test_a_training_in_its_own_runs_directory_is_a_cell_with_its_score(
    train: Train, tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    root = directory / "rank64_s2" / "runs"
    result = train(root, {"noise": [0.01]}, seeds=[2], control=False)
    cell = board_of(directory).matrix.rows[1][1]
    assert cell.status == "ok"
    assert cell.score == result.state.generations[0].score(0)


def test_a_whole_campaign_is_no_cell(train: Train, tmp_path: Path) -> None:
    directory = written(tmp_path / "ranks")
    train(directory / "rank4_s1")
    cell = board_of(directory).matrix.rows[0][0]
    assert (cell.status, cell.note) == (
        "damaged",
        "a campaign of 15 cells in the place of one",
    )


def test_a_search_is_a_cell_with_how_far_it_is(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    result = run_search(tmp_path / "own", assumed_seconds=1.0, settings={"noise": 0.01})
    shutil.copytree(result.directory, directory / "rank4_s1")
    board = board_of(directory)
    cell = board.matrix.rows[0][0]
    healthy = [score for score in result.state.told[-1].scores() if score is not None]
    assert (cell.status, cell.settled, cell.planned) == ("ok", 16, 16)
    assert cell.score == pytest.approx(sum(healthy) / len(healthy))
    assert board.report.measure == "mean score of the last generation"


def test_searches_compared_on_fresh_seeds_stand_for_that(
    search_confirmed: Callable[..., Result], tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    result = search_confirmed(tmp_path / "own")
    shutil.copytree(result.directory, directory / "rank4_s1")
    board = board_of(directory)
    panel = result.state.panel("winner")
    assert panel is not None
    assert board.report.measure == "the winner's score on fresh seeds"
    assert board.matrix.rows[0][0].score == panel.score(0)


def test_a_calibration_beside_a_run_is_not_taken_for_it(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    root = directory / "rank4_s1"
    run_search(root, settings={"noise": 0.01})
    assert any((root / "calibration").iterdir())
    assert board_of(directory).matrix.rows[0][0].planned == 16


def test_a_damaged_run_is_said_and_hides_no_other(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    result = run_search(tmp_path / "own", assumed_seconds=1.0)
    for cell in ("rank4_s1", "rank4_s2"):
        shutil.copytree(result.directory, directory / cell)
    ledger = directory / "rank4_s2" / LEDGER
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    board = board_of(directory)
    assert [cell.status for cell in board.matrix.rows[0]] == ["ok", "damaged"]
    assert "rank4, seed 2: damaged: " in "\n".join(board.lines())


def test_a_search_that_stopped_for_its_budget_says_why(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    result = run_search(tmp_path / "own", assumed_seconds=1.0, max_device_hours=0.02)
    shutil.copytree(result.directory, directory / "rank4_s1")
    cell = board_of(directory).matrix.rows[0][0]
    assert cell.status == "stopped"
    assert cell.note


def test_one_that_runs_shows_how_many_evaluations_are_settled(
    run_search: Callable[..., Result], cut: Callable[[Path, int], None], tmp_path: Path
) -> None:
    directory = written(tmp_path / "ranks")
    result = run_search(tmp_path / "own", assumed_seconds=1.0)
    cut(result.directory, 7)
    shutil.copytree(result.directory, directory / "rank4_s1")
    board = board_of(directory, datetime.now(UTC) + timedelta(seconds=3))
    assert "> 7/16" in "\n".join(board.lines())
    assert board.whose == "1 of 6 runs running"
