"""`status [RUN] [--watch]`: how a run or a campaign stands, now or until it is over."""

import json
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Option

from budgets.formatting import printable
from orchestrator.cli.board import show_board
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import console, print_json, print_line, silence
from orchestrator.look.board import Board, find_board
from orchestrator.look.document import document
from orchestrator.look.run import Run
from orchestrator.look.terminal import status_lines
from orchestrator.look.text import sentence
from orchestrator.look.viewer import Screen, Seen, can_paint, looks, pause
from orchestrator.records.recorded import find_run


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
    directory = board.directory if board is not None else find_run(run, root)
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(directory, as_json=as_json, is_of_runs=board is not None and board.is_of_runs)
    elif board is not None:
        show_board(board, as_json=as_json)
    else:
        _, seen = next(looks(directory))
        if as_json:
            print_json(document(seen))
        for line in () if as_json else status_lines(directory, seen):
            print_line(printable(line))


def _watch(directory: Path, *, as_json: bool, is_of_runs: bool) -> None:
    """A picture on a terminal, lines in a pipe, or a document a line; raises as a look does."""
    on_screen = not as_json and can_paint(console())
    of_run: Iterator[tuple[list[str], Seen]] = looks(directory, brief=on_screen)
    followed = _boards(directory) if is_of_runs else of_run
    with Screen() if on_screen else nullcontext() as screen:
        known: object = None
        while True:
            began = time.process_time()
            news, seen = next(followed)
            lines = [] if as_json else news
            if (key := _key(seen, as_json=as_json)) != known:
                known, lines = key, [*lines, *_standing(directory, seen, as_json=as_json)]
            if screen is not None:
                screen.show(news, seen)
            elif lines and not _is_read(lines):
                return
            if seen.is_over if isinstance(seen, Run) else not seen.matrix.unsettled:
                return
            time.sleep(pause(began))


def _boards(directory: Path) -> Iterator[tuple[list[str], Seen]]:
    """A campaign whose cells are runs, look by look."""
    while (board := find_board(str(directory), directory, datetime.now(UTC))) is not None:
        yield [], board
    raise ValueError(f"{directory} is no campaign any more")


def _key(seen: Seen, *, as_json: bool) -> object:
    """What is another when there is something new to say."""
    if isinstance(seen, Board):
        return [(cell.status, cell.score) for cell in seen.matrix.cells]
    return seen.standing.kind, as_json and seen.state.records


def _standing(directory: Path, seen: Seen, *, as_json: bool) -> list[str]:
    if isinstance(seen, Board):
        return [json.dumps(seen.as_dict())] if as_json else seen.lines()
    if as_json:  # of a campaign in one ledger its board
        board = find_board(str(directory), directory, seen.now)
        return [json.dumps(document(seen) if board is None else board.as_dict())]
    return [f"{directory}: {seen.standing.whose}", f"{sentence(seen)} {seen.standing.way_on}"]


def _is_read(lines: list[str]) -> bool:
    """Print them at once; whether anybody reads that."""
    try:
        print(*map(printable, lines), sep="\n", flush=True)
    except BrokenPipeError:
        silence(console())
        return False
    return True
