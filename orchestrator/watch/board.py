"""The board of a campaign whose cells are runs of their own, drawn anew as they go on."""

from collections.abc import Callable, Iterator
from typing import Protocol, Self

import orjson
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from budgets.campaign.matrix import Cell
from budgets.plain import printable
from orchestrator.campaign.status import Board
from orchestrator.watch.glyphs import fitted, glyphs_for, shown
from orchestrator.watch.readers import ABOVE, write
from orchestrator.watch.screen import Screen
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


class OnTerminal:
    """The board at the bottom of the terminal; it stays there in the end. A context manager."""

    def __init__(self, console: Console) -> None:
        self._screen = Screen(console, self._picture, ABOVE)
        self._shown: Board | None = None

    def __enter__(self) -> Self:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._screen.say(Listing(self._shown))
        self._screen.stop()

    def see(self, board: Board) -> bool:
        self._shown = board
        return self._screen.is_alive()

    def _picture(self, lines: int) -> RenderableType | None:
        return None if self._shown is None else Listing(self._shown, lines)


class AsLines:
    """A line for each cell that stands otherwise than before."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Cell] = {}
        self._whose = ""

    def see(self, board: Board) -> bool:
        lines = []
        if board.whose != self._whose:
            self._whose = board.whose
            lines.append(f"{board.directory}: {board.whose}")
        for where, cell in cells(board):
            if self._known.get(where) != cell:
                self._known[where] = cell
                lines.append(f"{where[0]}, seed {where[1]}: {_said(cell)}")
        return all(write(f"{printable(line)}\n") for line in lines)


class AsJson:
    """An object a line whenever a cell stands otherwise than before."""

    def __init__(self) -> None:
        self._known: tuple[object, ...] = ()

    def see(self, board: Board) -> bool:
        known = (board.whose, *cells(board))
        if known == self._known:
            return True
        self._known = known
        return write(f"{orjson.dumps(board.as_dict()).decode()}\n")


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
