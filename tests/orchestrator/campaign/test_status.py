"""How a campaign stands, seen from beside it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from budgets.events import Owner
from budgets.ledger.chain import LEDGER, read
from orchestrator.look.board import Board, find_board
from orchestrator.records.recorded import Result

Train = Callable[..., Result]
Cut = Callable[[Path, int], None]

DEAD = Owner(boot_id="another boot", pid=1, start_ticks=1)


def last(directory: Path) -> datetime:
    """The moment of the ledger's last record."""
    return datetime.fromisoformat(read(directory / LEDGER).records[-1].at)


def board_at(directory: Path, seconds: float) -> Board:
    """So long after its last record."""
    now = last(directory) + timedelta(seconds=seconds)
    board = find_board(str(directory), directory.parent.parent, now)
    assert board is not None
    return board


def test_a_campaign_that_is_over_shows_every_score_and_what_was_found(
    train: Train, tmp_path: Path
) -> None:
    result = train(tmp_path)
    board = board_at(result.directory, 1)
    lines = board.lines()
    assert lines[0] == f"{result.directory}: finished"
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("noise")}
    generation = result.state.generations[0]
    scores = generation.scores_by_seed(0)
    assert rows["noise0.01_dimension2"][:3] == [f"{scores[seed]:.5g}" for seed in (1, 2, 3)]
    assert "15 of 15 settled: 15 ok." in lines
    assert any(line.startswith("All 15 evaluations are settled") for line in lines)


def test_one_that_runs_shows_what_is_in_flight_and_since_when(
    train: Train, cut: Cut, tmp_path: Path
) -> None:
    directory = train(tmp_path).directory
    cut(directory, 4)
    board = board_at(directory, 41)
    assert board.whose.startswith("running (pid ")
    cell = board.matrix.rows[1][1]
    assert cell.status == "running"
    assert cell.seconds == pytest.approx(41, abs=0.01)
    assert cell.since == last(directory).isoformat()
    assert "> 41s" in board.lines()[4]
    assert board.matrix.counts == {"ok": 4, "running": 1, "pending": 10}
    assert not board.report.is_over


def test_one_whose_machine_is_elsewhere_runs_as_long_as_it_may(
    train: Train, cut: Cut, tmp_path: Path
) -> None:
    directory = train(tmp_path, owner=DEAD).directory
    cut(directory, 4)
    soon, late = board_at(directory, 5), board_at(directory, 100_000)
    assert soon.matrix.rows[1][1].status == "running"
    assert soon.matrix.rows[1][1].note.startswith("on ")
    assert ", last record 5 s ago" in soon.whose
    assert late.matrix.rows[1][1].status == "pending"
    assert late.matrix.rows[1][1].note == "interrupted"


def test_one_whose_process_is_gone_has_nothing_in_flight_and_says_how_to_go_on(
    train: Train, cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = train(tmp_path).directory
    cut(directory, 4)
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: True)
    board = board_at(directory, 1)
    assert board.matrix.counts == {"ok": 4, "pending": 11}
    assert "Repeat the command that began it to go on." in board.lines()


def test_looking_changes_no_file(train: Train, tmp_path: Path) -> None:
    directory = train(tmp_path).directory

    def seen() -> dict[Path, tuple[int, int]]:
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}

    before = seen()
    board_at(directory, 1).lines()
    assert seen() == before


def test_a_campaign_is_found_by_its_name_and_as_the_latest_run(
    train: Train, tmp_path: Path
) -> None:
    directory, now = train(tmp_path).directory, datetime.now(UTC)
    for run in ("toy", None):
        board = find_board(run, tmp_path, now)
        assert board is not None
        assert board.directory == directory


def test_a_search_is_no_campaign(run_search: Callable[..., Result], tmp_path: Path) -> None:
    result = run_search(tmp_path, assumed_seconds=1.0)
    assert find_board(str(result.directory), tmp_path, datetime.now(UTC)) is None


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no run 'nothing'"):
        find_board("nothing", tmp_path, datetime.now(UTC))
