"""Watching a run by its ledger, without disturbing whoever carries it out.

As a program of its own, which `cli/session.py` starts, it keeps the picture below what a command
says. It is no part of the run: whatever becomes of it or of the terminal, evaluations go on.
"""

import errno
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from budgets.formatting import printable
from budgets.ledger import LEDGER
from objectives.process import die_with_parent
from orchestrator.look.campaign import Exported
from orchestrator.look.run import Run
from orchestrator.look.terminal import Picture, harmless, line_of
from orchestrator.records.tail import Tail

LOOK_SECONDS, LOOK_SHARE, LOOK_MOST = 1.0, 0.005, 5.0
"""Seconds between two looks at the ledger; more where they take a larger share of a core than that,
up to a most: the first one imports, which takes half a second."""

TOGETHER_SECONDS, ABOVE = 0.1, 3
"""What is said within so long is printed at once; how many lines of it are seen at the least."""

SHOW = "\0"
"""Begins a line that names the run to show; every other line is to be printed."""

PIPE_BYTES = 1 << 16

Seen = Run | Exported


def can_paint(console: Console) -> bool:
    """Whether there is a terminal that can be painted on, and this is no job in the background."""
    try:
        terminal = console.file.fileno()
        is_able = os.isatty(terminal) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        return is_able and os.tcgetpgrp(terminal) == os.getpgrp()
    except (OSError, ValueError) as error:  # a terminal that is nobody's has no background
        return isinstance(error, OSError) and error.errno == errno.ENOTTY


def looks(directory: Path, *, brief: bool = False) -> Iterator[tuple[list[str], Run]]:
    """What is new since the look before, as lines, and how the run stands; the first has no news.

    `brief` leaves out what a picture shows. Raises as `Tail.news` does; ValueError where there is
    no whole record, or none any more.
    """
    tail = Tail(directory)
    while True:
        now, is_news, lines = datetime.now(UTC), True, list[str]()
        for record in tail.news():
            is_news = is_news and record.seq > 0  # else the ledger is read from its beginning
            if is_news and tail.state:
                line = line_of(Run(tail.state, now, directory), record.event, brief=brief)
                lines += [line] if line else []
        if tail.state is None or tail.is_gone:
            raise ValueError(f"{directory / LEDGER} holds no whole record")
        yield lines, Run(tail.state, now, directory)


def pause(began: float) -> float:
    """Seconds until the next look; `began` is the process's CPU time when the last one began."""
    seconds = (time.process_time() - began) / LOOK_SHARE
    return min(LOOK_MOST, max(LOOK_SECONDS, seconds))


class Canvas(Console):
    """A terminal whose cursor is never hidden: nobody has to bring it back after a kill."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
        return False


class Screen:
    """A terminal with a picture at its bottom, and lines that scroll by above it.

    The cursor rests on an empty line below the picture: there goes on whoever comes after a kill.
    A context manager; the last picture stays, unless it is `transient`.
    """

    def __init__(self, *, transient: bool = False) -> None:
        self._console = Canvas(emoji=False, highlight=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=transient,
        )
        self._width, self._unsaid = 0, list[str]()

    def __enter__(self) -> "Screen":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._print()
        self._live.stop()

    def show(self, said: list[str], seen: Seen) -> None:
        """Print these lines, and the picture below them; later, where it is in the background.

        An interrupt waits until it is painted: what rich has half written it would write again.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self._paint(said, seen)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _paint(self, said: list[str], seen: Seen) -> None:
        self._unsaid += said
        if not can_paint(self._console):
            return
        if self._console.width < self._width:  # the terminal has folded lines: nobody knows which
            self._console.clear()
        self._width, height = self._console.size
        if isinstance(seen, Run):
            self._live.update(Group(Picture(seen, max(1, height - ABOVE)), ""))
        else:
            self._live.update(Group(*map(harmless, seen.lines(self._width)), ""))
        self._print() if self._unsaid else self._live.refresh()

    def _print(self) -> None:
        said, self._unsaid = self._unsaid, []
        if said:
            self._console.print(Text("\n".join(map(printable, said))), soft_wrap=True)


def main() -> None:
    """Show what a parent process says through a pipe, until it closes that or is gone."""
    parent, pipe, rest = os.getppid(), sys.stdin.fileno(), b""
    die_with_parent(parent)  # the shell that comes next is not painted over
    seconds: float | None = None  # the first line names a run
    with Screen(transient=True) as screen:
        while True:
            data, said = None, list[str]()
            if select.select([pipe], [], [], seconds)[0]:
                time.sleep(TOGETHER_SECONDS)
                data = os.read(pipe, PIPE_BYTES)
            if os.getppid() != parent:
                os._exit(0)
            if data == b"":
                return
            began = time.process_time()
            *lines, rest = (rest + (data or b"")).split(b"\n")
            for line in map(os.fsdecode, lines):
                if line.startswith(SHOW):
                    looked = looks(Path(line.removeprefix(SHOW)), brief=True)
                else:
                    said.append(line)
            _, run = next(looked)  # what is news the parent says
            screen.show(said, run)
            seconds = pause(began)


if __name__ == "__main__":
    main()
