"""`status [RUN] [--watch]`: how a run or a campaign stands, now or until it is over."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from budgets.ledger.chain import LEDGER
from budgets.plain import printable
from budgets.report.markdown import amount
from budgets.report.model import budget_report
from budgets.report.pace_text import pace_line
from budgets.state import RunState
from orchestrator.cli.board import show_board
from orchestrator.cli.conducting import EXIT_SIGNAL
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import console, print_json, print_line
from orchestrator.look.board import Board, find_board
from orchestrator.records.recorded import find_run
from orchestrator.running.session import system_clock
from orchestrator.watch.board import BOARD, watch_board
from orchestrator.watch.follow import Follower
from orchestrator.watch.readers import AsJson, AsLines, OnTerminal, Seen, Showing
from orchestrator.watch.rows import told
from orchestrator.watch.screen import can_paint
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.tidy import tidy
from orchestrator.watch.view import run_in
from orchestrator.watch.watching import watch as watch_run

MOST_DEVICES = 16
"""Lines of devices, where a status is printed once."""


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
    board = find_board(run, root, system_clock().now())
    if watch:
        with suppress(KeyboardInterrupt), _orderly_end():
            _watch(board, run, root, as_json=as_json)
    elif board is not None:
        show_board(board, as_json=as_json)
    else:
        _show(find_run(run, root), as_json=as_json)


def _show(directory: Path, *, as_json: bool) -> None:
    """Once, as it stands. Raises as `load_state` does."""
    follower, now = Follower(directory), datetime.now(UTC)
    follower.advance()
    found = follower.snapshot(now)
    if found is None or follower.state is None:
        raise ValueError(f"{directory / LEDGER} holds no whole record yet")
    if as_json:
        print_json(_document(directory, follower.state, found))
        return
    for line in _lines(directory, found):
        print_line(printable(line))


def _document(directory: Path, state: RunState, found: Snapshot) -> dict[str, Any]:
    said = found.model_dump()
    return {
        "directory": str(directory),
        "running": found.standing == "running",
        **{name: said[name] for name in ("standing", "whose")},
        **budget_report(state).model_dump(),
        "pace": None if found.is_over else said["pace"],
        "slots": said["devices"],
    }


def _lines(directory: Path, found: Snapshot) -> Iterator[str]:
    yield f"{directory}: {found.whose}"
    yield found.sentence
    balances = [balance for balance in found.balances if balance.counts]
    width = max(len(balance.label) for balance in balances)
    for one in balances:
        spent, reserved, free = (amount(one, of) for of in (one.spent, one.reserved, one.free))
        yield f"  {one.label:{width}s}  {spent} spent, {reserved} reserved, {free}" + (
            "" if one.free is None else " free"
        )
    if not found.is_over:  # nobody's run ends at no time
        eta = {"eta": None} if found.way_on else {}
        yield pace_line(found.pace.model_copy(update=eta))
    if found.standing == "running":
        yield from (f"  {line}" for line in told(found.devices, MOST_DEVICES))
    if found.way_on:
        yield found.way_on


def _watch(board: Board | None, run: str | None, root: Path, *, as_json: bool) -> None:
    if board is not None and board.is_of_runs:
        _watch_board(board.directory, as_json=as_json)
        return
    directory = board.directory if board is not None else find_run(run, root)
    follower, now = Follower(directory), partial(datetime.now, UTC)
    with _reading(run_in(directory, now), as_json=as_json) as reader:
        watch_run(follower, reader, now, time.sleep)


def _watch_board(directory: Path, *, as_json: bool) -> None:
    def board() -> Board:
        found = find_board(str(directory), directory, system_clock().now())
        if found is None:
            raise ValueError(f"{directory} is no campaign any more")
        return found

    with _reading(BOARD, as_json=as_json) as reader:
        watch_board(board, reader, time.sleep, time.process_time)


@contextmanager
def _reading(
    showing: Showing[Seen], *, as_json: bool
) -> Iterator[AsJson[Seen] | AsLines[Seen] | OnTerminal[Seen]]:
    """Whoever is told of it: a program, a pipe or a terminal."""
    screen = console()
    if as_json:
        yield AsJson(showing)
    elif not can_paint(screen):
        yield AsLines(showing)
    else:
        with tidy(screen), OnTerminal(screen, showing) as reader:
            yield reader


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
