"""A campaign of runs is watched until every one of them has ended."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from budgets.campaign.effects import campaign_report
from budgets.campaign.matrix import Cell, Matrix
from budgets.terms import CampaignTerms, Condition
from orchestrator.look.board import Board
from orchestrator.watch.board import BOARD, SHARE, Listing, watch_board
from orchestrator.watch.readers import AsJson, AsLines, OnTerminal
from orchestrator.watch.screen import Page
from tests.orchestrator.watch.conftest import Terminal

OK, WAITS = Cell(status="ok", score=1.5), Cell(status="pending")


def runs(seconds: float = 5.0) -> Cell:
    return Cell(status="running", seconds=seconds, settled=3, planned=16)


def board(*cells: Cell) -> Board:
    """A board of one condition."""
    condition = Condition(name="a\x1b[2J", settings={}, knobs={})
    terms = CampaignTerms(
        name="sizes", conditions=(condition,), seeds=tuple(range(1, 1 + len(cells)))
    )
    matrix = Matrix(terms=terms, rows=(cells,))
    running = sum(cell.status == "running" for cell in cells)
    return Board(
        directory=Path("campaign/sizes"),
        matrix=matrix,
        report=campaign_report(matrix, 0.05, is_over=False, measure="score"),
        whose=f"{running} of {len(cells)} runs running",
        sentence="It goes on.",
        objective="sphere",
    )


class Remembers:
    def __init__(self, looks: int = 100) -> None:
        self.seen: list[Board] = []
        self._looks = looks

    def see(self, board: Board) -> bool:
        self.seen.append(board)
        return len(self.seen) < self._looks


def watched(reader: Remembers, boards: list[Board], cost: float = 0.0) -> list[float]:
    """How long was waited between looks that cost so many CPU seconds each."""
    given, waits, ticks = iter(boards), list[float](), iter(range(1000))
    watch_board(lambda: next(given), reader, waits.append, lambda: cost * next(ticks))
    return waits


def test_it_is_watched_until_every_cell_has_ended() -> None:
    reader = Remembers()
    assert watched(reader, [board(runs(), WAITS), board(OK, runs()), board(OK, OK)]) == [1.0, 1.0]
    assert len(reader.seen) == 3


def test_nobody_looking_any_more_is_the_end() -> None:
    reader = Remembers(looks=1)
    assert watched(reader, [board(WAITS)]) == []


def test_many_ledgers_are_read_less_often() -> None:
    waits = watched(Remembers(), [board(WAITS), board(OK)], cost=0.05)
    assert waits == pytest.approx([0.05 / SHARE])


def test_a_pipe_hears_of_cells_that_stand_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    reader = AsLines(BOARD)
    assert reader.see(board(runs(), WAITS))
    assert reader.see(board(runs(6.0), WAITS))
    assert reader.see(board(OK, runs()))
    assert capsys.readouterr().out.splitlines() == [
        "campaign/sizes: 1 of 2 runs running",
        "a�[2J, seed 1: running 3/16",
        "a�[2J, seed 2: pending",
        "a�[2J, seed 1: ok 1.5",
        "a�[2J, seed 2: running 3/16",
    ]


def test_a_program_hears_when_there_is_something_new(capsys: pytest.CaptureFixture[str]) -> None:
    reader = AsJson(BOARD)
    for one in (board(runs()), board(runs(6.0)), board(OK)):
        assert reader.see(one)
    documents = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [document["statuses"] for document in documents] == [{"running": 1}, {"ok": 1}]


def shown(one: Board, width: int, height: int) -> list[str]:
    page = Page("utf-8")
    Console(file=page, width=width).print(Listing(one, height))
    return page.take().split("\n")[:-1]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 5), (20, 2), (200, 50)])
def test_it_fits(width: int, height: int) -> None:
    lines = shown(board(*30 * [OK]), width, height)
    assert 0 < len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert "\x1b" not in "".join(lines)


def test_lines_without_room_are_counted() -> None:
    whole = shown(board(OK), 80, 50)
    assert shown(board(OK), 80, 3)[-1] == f"and {len(whole) - 2} lines more"


def test_the_last_board_stays_on_the_terminal() -> None:
    terminal = Terminal(80, 24)
    console: Callable[..., Console] = Console
    screen = console(file=terminal, force_terminal=True, color_system=None)
    with OnTerminal(screen, BOARD) as reader:
        assert reader.see(board(OK))
    assert any("runs running" in line for line in terminal.seen())
