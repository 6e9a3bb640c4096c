"""A campaign's board and result, printed and drawn."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from budgets.plain import printable
from orchestrator.charts.forms import MISSING
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.look.board import Board
from orchestrator.report import campaign_picture as picture


def show_board(board: Board, *, as_json: bool) -> None:
    """The matrix, condition by seed."""
    if as_json:
        print_json(board.as_dict())
        return
    for line in board.lines():
        print_line(printable(line))


def collected(directory: Path, now: datetime, say: Callable[[str], None]) -> Board:
    """A campaign whose cells are runs, its files written as these stand. Raises ValueError."""
    from orchestrator.look.board import collect_runs

    board = collect_runs(directory, now)
    picture.draw_beside(directory, board.report, board.objective, say)
    return board


def show_result(board: Board, *, as_json: bool) -> None:
    """The result of a campaign whose cells are runs."""
    if as_json:
        print_json(board.as_dict())
    else:
        print_markdown(board.markdown())


def draw_board(board: Board | None, path: Path) -> None:
    """Write the picture. Raises ValueError where there is no campaign, or nothing to draw with."""
    if board is None:
        raise ValueError("--plot: only a campaign has effects to draw")
    unit = picture.unit_of(board.objective, board.report.measure)
    try:
        picture.draw(board.report, path, unit)
    except ImportError:
        raise ValueError(f"--plot: {MISSING}") from None
