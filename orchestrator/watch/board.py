"""The board of a campaign whose cells are runs of their own, drawn anew as they go on."""

from collections.abc import Callable, Iterator
from typing import Protocol

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from budgets.campaign.matrix import Cell
from orchestrator.look.board import Board
from orchestrator.watch.glyphs import fitted, glyphs_for, shown
from orchestrator.watch.readers import Showing
from orchestrator.watch.watching import LOOK_SECONDS

SHARE = 0.005
"""Of a core: where there are many ledgers to read, they are read less often."""

NARROWEST = 60
"""Columns for which a matrix is laid out at least; the rest of a line is cut off."""


class Listing:
    """A board in so many lines at most; those that do not fit are counted."""

    def __init__(self, board: Board, height: int | None = None) -> None:
        self._board, self._height = board, height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        width, encoding = options.max_width, options.encoding
        glyphs = glyphs_for(encoding)
        for line in self._kept(self._board.lines(max(width, NARROWEST))):
            clean = shown(line, encoding).replace("\n", " ")
            yield from (Segment(*piece) for piece in fitted(((clean, None),), width, glyphs.cut))
            yield Segment.line()

    def _kept(self, lines: list[str]) -> list[str]:
        height = self._height
        if height is None or len(lines) <= height:
            return lines
        return [*lines[: height - 1], f"and {len(lines) - height + 1} lines more"]


class Reader(Protocol):
    """Whoever is told of a campaign."""

    def see(self, board: Board) -> bool:
        """The campaign as it stands. Answers whether anybody still looks."""


def watch_board(
    board_of: Callable[[], Board],
    reader: Reader,
    wait: Callable[[float], None],
    cpu_seconds: Callable[[], float],
) -> None:
    """Show the campaign until every cell has ended, or nobody looks any more."""
    while True:
        began = cpu_seconds()
        board = board_of()
        if not reader.see(board) or not board.matrix.unsettled:
            return
        wait(max(LOOK_SECONDS, (cpu_seconds() - began) / SHARE))


def cells(board: Board) -> Iterator[tuple[tuple[str, int], Cell]]:
    """Every cell with its condition and seed, without the time that passes by itself."""
    terms = board.matrix.terms
    for condition, row in zip(terms.conditions, board.matrix.rows, strict=True):
        for seed, cell in zip(terms.seeds, row, strict=True):
            timeless = cell if cell.is_over else cell.model_copy(update={"seconds": None})
            yield (condition.name, seed), timeless


def _said(cell: Cell) -> str:
    score = "" if cell.score is None else f" {cell.score:.5g}"
    progress = f" {cell.settled}/{cell.planned}" if cell.planned > 1 and not cell.is_over else ""
    return f"{cell.status}{score}{progress}{f' ({cell.note})' if cell.note else ''}"


def _news(before: Board | None, found: Board) -> Iterator[str]:
    if before is None or before.whose != found.whose:
        yield f"{found.directory}: {found.whose}"
    known = {} if before is None else dict(cells(before))
    for where, cell in cells(found):
        if known.get(where) != cell:
            yield f"{where[0]}, seed {where[1]}: {_said(cell)}"


BOARD = Showing[Board](
    Listing, _news, lambda found: (found.whose, *cells(found)), lambda found: found.as_dict()
)
