"""A campaign's board and result, printed."""

from budgets.formatting import printable
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.look.board import Board


def show_board(board: Board, *, as_json: bool) -> None:
    """The matrix, condition by seed."""
    if as_json:
        print_json(board.as_dict())
        return
    for line in board.lines():
        print_line(printable(line))


def show_result(board: Board, *, as_json: bool) -> None:
    """The result of a campaign whose cells are runs."""
    if as_json:
        print_json(board.as_dict())
    else:
        print_markdown(board.markdown())
