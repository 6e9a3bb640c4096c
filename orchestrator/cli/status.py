"""`status [RUN] [--watch]`: how a run or a campaign stands, now or until it is over."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from budgets.ledger.chain import LEDGER
from budgets.plain import printable
from orchestrator.cli.board import show_board
from orchestrator.cli.conducting import EXIT_SIGNAL
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import console, print_json, print_line
from orchestrator.look.board import Board, find_board
from orchestrator.look.document import document
from orchestrator.look.run import Run
from orchestrator.look.terminal import status_lines
from orchestrator.look.viewer import (
    OnScreen,
    Reader,
    as_json_lines,
    as_lines,
    can_paint,
    watch_board,
    watch_run,
)
from orchestrator.records.recorded import find_run
from orchestrator.records.tail import Tail


def status(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    watch: Annotated[
        bool,
        Option("--watch", help="Follow it until it is over, or Ctrl-C, without affecting the run."),
    ] = False,
    as_json: Json = False,
) -> None:
    """How a run or a campaign stands, also while another process runs it. Writes nothing."""
    board = find_board(run, root, datetime.now(UTC))
    if watch:
        with suppress(KeyboardInterrupt), _orderly_end():
            _watch(board, run, root, as_json=as_json)
    elif board is not None:
        show_board(board, as_json=as_json)
    else:
        _show(find_run(run, root), as_json=as_json)


def _show(directory: Path, *, as_json: bool) -> None:
    """Once, as it stands. Raises as `load_state` does."""
    tail = Tail(directory)
    tail.advance()
    if tail.state is None:
        raise ValueError(f"{directory / LEDGER} holds no whole record yet")
    run = Run(tail.state, datetime.now(UTC), directory)
    if as_json:
        print_json(document(run))
        return
    for line in status_lines(directory, run):
        print_line(printable(line))


def _watch(board: Board | None, run: str | None, root: Path, *, as_json: bool) -> None:
    directory = board.directory if board is not None else find_run(run, root)
    screen, is_of_runs = console(), board is not None and board.is_of_runs
    on_screen = OnScreen(screen) if not as_json and can_paint(screen) else None
    reader: Reader = on_screen or (as_json_lines() if as_json else as_lines(directory))
    with on_screen or nullcontext():
        if is_of_runs:
            watch_board(partial(_board, directory), reader, time.sleep)
        else:
            watch_run(directory, reader, time.sleep, brief=on_screen is not None)


def _board(directory: Path) -> Board:
    found = find_board(str(directory), directory, datetime.now(UTC))
    if found is None:
        raise ValueError(f"{directory} is no campaign any more")
    return found


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Within the block SIGTERM ends the process as exceptions do: the terminal is left whole."""

    def leave(signum: int, _frame: object) -> None:
        raise typer.Exit(EXIT_SIGNAL + signum)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
