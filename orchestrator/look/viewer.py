"""Watching a run by its ledger, without disturbing whoever carries it out.

`watch_run` follows a run to its end, `watch_board` a campaign. As a program of its own this module
is the picture below what a running command says: `cli/output.py` starts it, and tells it by packets
on its stdin what to say and which run to show. It is no part of the run: whatever becomes of it or
of the terminal, evaluations go on.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Self

from rich.console import Console, RenderableType

from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.plain import printable
from orchestrator.look.board import Board
from orchestrator.look.document import document
from orchestrator.look.lines import is_lasting, line_of
from orchestrator.look.run import Run
from orchestrator.look.terminal import ENDLESS, Picture, listing
from orchestrator.look.text import sentence
from orchestrator.records.tail import Tail

LOOK_SECONDS = 1.0
"""How often there is a look at the ledger, unless that is dear ..."""

LOOK_SHARE = 0.005
"""... which is what share of a core it may take."""

PATIENCE = 3
"""Looks in a row at a ledger that cannot be read, before it is not just being replaced."""

ABOVE = 3
"""Lines of the terminal that the picture leaves to what is said above it."""

ERASE_BELOW = "\x1b[J"

UNREADABLE = (LedgerCorruptError, ImpossibleEventError, ValueError, OSError)


def can_paint(console: Console) -> bool:
    """Whether there is a terminal that can be painted on."""
    try:
        return console.file.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    except ValueError:  # closed
        return False


class Screen:
    """A terminal with a picture at its bottom, and lines that scroll by above it.

    Between two paintings the cursor rests above the picture, where a line begins. So what anybody
    else writes comes to stand above it; and what is below the cursor is the picture, however the
    terminal is resized and whoever has to take it away: a single `ERASE_BELOW` does.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._terminal = console.file.fileno()

    @property
    def room(self) -> int:
        """Lines that a picture may have."""
        return max(1, self._size().lines - ABOVE)

    def paint(self, said: list[str], picture: RenderableType | None) -> None:
        """Print these lines, and the picture below them. Raises OSError where nobody is there."""
        size = self._size()
        frame = [] if picture is None or not self._is_in_front() else self._drawn(picture, size)
        below = "\n".join(["", *frame]) + f"\x1b[{len(frame)}A\r" if frame else ""
        self._write(f"\r{ERASE_BELOW}{self._lines(said)}{below}")

    def leave(self, picture: RenderableType) -> None:
        """Print the picture for good."""
        frame = "\n".join(self._drawn(picture, self._size()))
        self._write(f"\r{ERASE_BELOW}{frame}\n")

    def _lines(self, said: list[str]) -> str:
        encoding = self._console.encoding
        lines = (printable(line).encode(encoding, "replace").decode(encoding) for line in said)
        return "".join(f"{line}\n" for line in lines)

    def _drawn(self, picture: RenderableType, size: os.terminal_size) -> list[str]:
        with self._console.capture() as drawn:
            self._console.print(picture, width=size.columns, height=size.lines)
        return drawn.get().removesuffix("\n").split("\n")

    def _write(self, text: str) -> None:
        data = text.encode(self._console.encoding, "replace")
        while data:
            data = data[os.write(self._terminal, data) :]

    def _size(self) -> os.terminal_size:
        with suppress(OSError):
            found = os.get_terminal_size(self._terminal)
            if found.columns and found.lines:
                return found
        return os.terminal_size((80, 24))

    def _is_in_front(self) -> bool:
        """Whether the terminal is ours at the moment: a job in the background paints nothing."""
        try:
            return os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:  # it is nobody's
            return True


@contextmanager
def wiped_when_stopped(terminal: int) -> Iterator[None]:
    """Within the block Ctrl-Z takes the picture away: the terminal is the shell's for a while."""

    def stop(_signum: int, _frame: FrameType | None) -> None:
        wipe(terminal)
        os.kill(os.getpid(), signal.SIGSTOP)

    before = signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def wipe(terminal: int) -> None:
    """Take a picture away, unless the terminal is held up: by a way of its own, which waits not."""
    with suppress(OSError):
        own = os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        os.write(own, ERASE_BELOW.encode())
        os.close(own)


class Watched:
    """A run that somebody else carries out: its records as lines, and how it stands.

    Of the records there are when it is first looked at, those before `since` are no news; where
    that is None none are. `brief` leaves out what a picture shows.
    """

    def __init__(self, directory: Path, since: int | None = None, *, brief: bool = False) -> None:
        self.directory, self.brief = directory, brief
        self._tail, self._since = Tail(directory), since

    def news(self, now: datetime) -> Iterator[str]:
        """Lines of what is new. Raises as `Tail.news` does."""
        is_first = self._tail.state is None
        is_news = not is_first or self._since is not None
        for record in self._tail.news():
            is_news = is_news and (is_first or record.seq > 0)  # else the ledger was replaced
            is_told = is_news and record.seq >= (self._since or 0)
            if not is_told or (self.brief and not is_lasting(record.event)):
                continue
            assert self._tail.state is not None, "it is of this record"
            run = Run(self._tail.state, now, self.directory)
            if line := line_of(run, record.event, brief=self.brief):
                yield line

    def run(self, now: datetime) -> Run | None:
        """As of the last record that was told of; None before there is one."""
        if self._tail.state is None:
            return None
        found = Run(self._tail.state, now, self.directory)
        if self._tail.is_gone:
            gone = "its ledger is gone"
            found.standing = replace(found.standing, kind="interrupted", whose=gone)
        return found


Seen = Run | Board
Reader = Callable[[list[str], Seen], bool]
"""Is told of news and how it stands now. Answers whether anybody still looks."""


def watch_run(
    directory: Path, reader: Reader, wait: Callable[[float], None], *, brief: bool = False
) -> None:
    """Tell the reader of the run, from now on, until it is over or nobody looks any more.

    Raises as `Tail.news` does, once it is clear that the ledger stays as it is.
    """
    watched, failures = Watched(directory, brief=brief), 0
    news: list[str] = []
    while True:
        began, now = time.process_time(), datetime.now(UTC)
        try:
            news += watched.news(now)
            failures = 0
        except UNREADABLE:
            failures += 1
            if failures == PATIENCE or watched.run(now) is None:
                raise
        run = None if failures else watched.run(now)
        if run is not None:
            if not reader(news, run) or run.is_over:
                return
            news = []
        wait(pause(began))


def watch_board(board: Callable[[], Board], reader: Reader, wait: Callable[[float], None]) -> None:
    """The same of a campaign whose cells are runs of their own, until every cell has ended."""
    known: dict[str, str] = {}
    while True:
        began, found = time.process_time(), board()
        cells = board_cells(found)
        news = [f"{cell}: {said}" for cell, said in cells.items() if known.get(cell) != said]
        if not reader(news, found) or not found.matrix.unsettled:
            return
        known = cells
        wait(pause(began))


def pause(began: float) -> float:
    """Seconds until the next look; `began` is the process's CPU time when the last one began."""
    return max(LOOK_SECONDS, (time.process_time() - began) / LOOK_SHARE)


def board_cells(board: Board) -> dict[str, str]:
    """What is said of each cell, without the time that passes by itself."""
    terms, found = board.matrix.terms, dict[str, str]()
    for condition, row in zip(terms.conditions, board.matrix.rows, strict=True):
        for seed, cell in zip(terms.seeds, row, strict=True):
            score = "" if cell.score is None else f" {cell.score:.5g}"
            many = cell.planned > 1 and not cell.is_over
            progress = f" {cell.settled}/{cell.planned}" if many else ""
            note = f" ({cell.note})" if cell.note else ""
            found[f"{condition.name}, seed {seed}"] = f"{cell.status}{score}{progress}{note}"
    return found


# Who is told of it


def as_lines(directory: Path) -> Reader:
    """A pipe: how it stands whenever somebody else has it, and a line a record."""
    known = ""

    def read(news: list[str], seen: Seen) -> bool:
        nonlocal known
        lines, holder = list[str](), _holder(seen)
        if holder != known:
            lines.append(f"{directory}: {_whose(seen)}")
            way_on = "" if isinstance(seen, Board) else f"{sentence(seen)} {seen.standing.way_on}"
            lines += [way_on.rstrip()] if way_on else []
            known = holder
        order = [*news, *lines] if isinstance(seen, Run) else [*lines, *news]
        return all(_write(f"{printable(line)}\n") for line in order)

    return read


def as_json_lines() -> Reader:
    """A program: a document a line, whenever there is something new."""
    known: object = None

    def read(_news: list[str], seen: Seen) -> bool:
        nonlocal known
        key = board_cells(seen) if isinstance(seen, Board) else (seen.state.records, _holder(seen))
        if key == known:
            return True
        known = key
        found = seen.as_dict() if isinstance(seen, Board) else document(seen)
        return _write(f"{json.dumps(found)}\n")

    return read


class OnScreen:
    """A terminal. A context manager: the last picture stays there, however it ends."""

    def __init__(self, console: Console) -> None:
        self._screen = Screen(console)
        self._terminal = console.file.fileno()
        self._seen: Seen | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(wiped_when_stopped(self._terminal))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._seen is not None:
            with suppress(OSError):
                self._screen.leave(picture_of(self._seen, ENDLESS))

    def __call__(self, news: list[str], seen: Seen) -> bool:
        self._seen = seen
        try:
            self._screen.paint(news, picture_of(seen, self._screen.room))
        except OSError:  # the terminal went away
            return False
        return True


def picture_of(seen: Seen, height: int) -> RenderableType:
    """The picture of a run, or of a campaign's board."""
    if isinstance(seen, Run):
        return Picture(seen, height)
    return listing(seen.lines(), height)


def _holder(seen: Seen) -> str:
    """Who carries it out, without the time that passes by itself."""
    if isinstance(seen, Board):
        return seen.whose
    return seen.standing.whose if seen.standing.kind == "running" else seen.standing.kind


def _whose(seen: Seen) -> str:
    return seen.whose if isinstance(seen, Board) else seen.standing.whose


def _write(said: str) -> bool:
    """At once; whether anybody reads it."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(said)
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # so that nothing fails on what is left to flush
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


# As a program of its own

PACKET_BYTES = 1 << 16
"""Of what is said at once, at most."""

TOGETHER_SECONDS = 0.1
"""What is said within so long is written at once."""


def main() -> None:
    """Show what the parent process says, until it says that this is the end, or is gone.

    A packet is an object: `number` and `say`, a line to print, which is answered with a list of
    such numbers once it is printed; `show` and `since`, the run in a directory and its first record
    that is news; `end`.
    """
    parent, packets = socket.socket(fileno=sys.stdin.fileno()), SimpleQueue[dict[str, Any]]()
    console = Console(emoji=False, highlight=False)
    screen, watched, run = Screen(console), None, None
    threading.Thread(target=_hear, args=(parent, packets), daemon=True).start()
    is_over, seconds = False, 0.0
    # OSError: nobody is there any more
    with suppress(OSError), wiped_when_stopped(sys.stdout.fileno()):
        while not is_over:
            heard = _heard(packets, seconds)
            began, now = time.process_time(), datetime.now(UTC)
            said, printed = list[str](), list[int]()
            for packet in heard:
                if "say" in packet:
                    said.append(packet["say"])
                    printed.append(packet["number"])
                elif "show" in packet:
                    said += _news(watched, now)
                    watched = Watched(Path(packet["show"]), packet["since"], brief=True)
                else:
                    is_over = True
            said += _news(watched, now)
            run = run if watched is None else watched.run(now) or run
            is_shown = run is not None and not is_over
            screen.paint(said, picture_of(run, screen.room) if run and is_shown else None)
            if printed:
                parent.send(json.dumps(printed).encode())
            seconds = pause(began)


def _news(watched: Watched | None, now: datetime) -> list[str]:
    """Of a ledger that cannot be read what could be: the next look may find it whole."""
    lines = list[str]()
    if watched is not None:
        with suppress(*UNREADABLE):
            lines.extend(watched.news(now))
    return lines


def _heard(packets: SimpleQueue[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """What is said within so long, and what comes right after it."""
    heard = []
    with suppress(Empty):
        heard.append(packets.get(timeout=seconds))
        time.sleep(TOGETHER_SECONDS)
        while True:
            heard.append(packets.get_nowait())
    return heard


def _hear(parent: socket.socket, packets: SimpleQueue[dict[str, Any]]) -> None:
    """What the parent says; once it is gone the terminal is the shell's."""
    with suppress(OSError):
        while data := parent.recv(PACKET_BYTES):
            packets.put(json.loads(data))
    wipe(sys.stdout.fileno())
    os._exit(0)


if __name__ == "__main__":
    main()
