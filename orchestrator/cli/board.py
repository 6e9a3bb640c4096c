"""A campaign's board and result, printed and drawn."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from budgets.campaign.effects import CampaignReport
from budgets.plain import printable
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.look.board import Board, collect_runs

PICTURE = "effects.png"


def show_board(board: Board, *, as_json: bool) -> None:
    """The matrix, condition by seed."""
    if as_json:
        print_json(board.as_dict())
        return
    for line in board.lines():
        print_line(printable(line))


def collected(directory: Path, now: datetime, say: Callable[[str], None]) -> Board:
    """A campaign whose cells are runs, its files written as these stand. Raises ValueError."""
    board = collect_runs(directory, now)
    draw_beside(directory, board.report, say)
    return board


def draw_beside(directory: Path, report: CampaignReport, say: Callable[[str], None]) -> None:
    """`effects.png` in the campaign's directory."""
    from orchestrator.look.plots import write_campaign

    write_campaign(report, directory / PICTURE)
    say(f"Picture: {directory / PICTURE}")


def show_result(board: Board, *, as_json: bool) -> None:
    """The result of a campaign whose cells are runs."""
    if as_json:
        print_json(board.as_dict())
    else:
        print_markdown(board.markdown())
