"""`status [RUN] [--watch]`: how a run or a campaign stands, now or until it is over."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from budgets.ledger.chain import LEDGER
from budgets.plain import printable
from budgets.report.markdown import amount
from budgets.report.model import BudgetReport, budget_report
from budgets.report.pace import pace
from budgets.report.pace_text import pace_line
from orchestrator.campaign.status import Board, find_board
from orchestrator.cli.board import show_board
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import EXIT_SIGNAL, console, print_json, print_line
from orchestrator.records.recorded import find_run
from orchestrator.running.session import system_clock
from orchestrator.watch import board as boards
from orchestrator.watch import readers
from orchestrator.watch.follow import Follower
from orchestrator.watch.rows import told
from orchestrator.watch.screen import can_paint
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.tidy import tidy
from orchestrator.watch.watching import watch as watch_run

MOST_DEVICES = 16
"""Lines of devices, where a status is printed once."""


def status(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    watch: Annotated[
        bool, Option("--watch", help="Follow it until it is over, or Ctrl-C; disturbs nobody.")
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
    report, running = budget_report(follower.state), found.standing == "running"
    timing = pace(follower.state, now) if report.decision == "continue" else None
    if as_json:
        document = {"directory": str(directory), "running": running, **report.model_dump()}
        slots = found.model_dump(include={"devices"})["devices"]
        paced = None if timing is None else timing.model_dump()
        print_json({**document, "pace": paced, "slots": slots})
        return
    for line in (f"{directory}: {found.whose}", report.sentence, *_budget(report)):
        print_line(printable(line))
    if timing is not None:  # nobody's run ends at no time
        moved = timing.model_copy(update={"eta": None} if found.standing == "nobody" else {})
        print_line(printable(pace_line(moved)))
    for line in _devices(found):
        print_line(printable(line))
    if report.decision == "continue" and found.standing == "nobody":
        print_line("Repeat the command that began it to go on.")


def _budget(report: BudgetReport) -> Iterator[str]:
    for balance in report.balances:
        if balance.counts:
            free = "" if balance.free is None else " free"
            yield (
                f"  {balance.currency:13s} {amount(balance, balance.spent)} spent, "
                f"{amount(balance, balance.reserved)} reserved, "
                f"{amount(balance, balance.free)}{free}"
            )


def _devices(found: Snapshot) -> Iterator[str]:
    if found.standing == "running":
        yield from (f"  {line}" for line in told(found.devices, MOST_DEVICES))


def _watch(board: Board | None, run: str | None, root: Path, *, as_json: bool) -> None:
    if board is not None and board.is_of_runs:
        _watch_board(board.directory, as_json=as_json)
        return
    directory = board.directory if board is not None else find_run(run, root)
    follower, now = Follower(directory), partial(datetime.now, UTC)
    screen = console()
    with ExitStack() as stack:
        reader: readers.AsJson | readers.AsLines | readers.OnTerminal
        if as_json:
            reader = readers.AsJson(directory)
        elif not can_paint(screen):
            reader = readers.AsLines(directory)
        else:
            stack.enter_context(tidy(screen))
            reader = stack.enter_context(readers.OnTerminal(screen, now))
        watch_run(follower, reader, now, time.sleep)


def _watch_board(directory: Path, *, as_json: bool) -> None:
    def board() -> Board:
        found = find_board(str(directory), directory, system_clock().now())
        if found is None:
            raise ValueError(f"{directory} is no campaign any more")
        return found

    screen = console()
    with ExitStack() as stack:
        reader: boards.Reader
        if as_json:
            reader = boards.AsJson()
        elif not can_paint(screen):
            reader = boards.AsLines()
        else:
            stack.enter_context(tidy(screen))
            reader = stack.enter_context(boards.OnTerminal(screen))
        boards.watch_board(board, reader, time.sleep, time.process_time)


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
