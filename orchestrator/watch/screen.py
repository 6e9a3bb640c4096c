"""A terminal with a picture at its bottom, and lines that scroll by above it.

A thread of its own writes to the terminal, so that one that is held up (Ctrl-S, a slow connection)
holds up nobody else. Between two paintings the cursor rests above the picture, where its line
begins: what anybody else writes meanwhile comes to stand above it, and however the terminal is
resized, what is below the cursor is ours to paint anew.
"""

import io
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, cast

from rich.console import Console, RenderableType

from orchestrator.watch.glyphs import shown

PAINT_SECONDS = 1.0
"""How often the picture is painted, unless that is dear."""

PAINT_SHARE = 0.002
"""Of a core, that painting may take; what takes longer is painted less often."""

NOTHING_SECONDS = 0.1
"""How soon it is asked again whether there is something to paint."""

TOGETHER_SECONDS = 0.2
"""What is said within so long is written at once."""

END_SECONDS = 30.0
"""How long the end waits for a terminal that is held up."""

ERASE_LINE, ERASE_BELOW = "\x1b[K", "\x1b[J"

Picture = Callable[[int], RenderableType | None]
"""What is to be painted now, in so many lines at most; None: nothing."""


class Size(NamedTuple):
    """Of a terminal, in characters."""

    columns: int
    lines: int


class Page(io.StringIO):
    """What is printed, for a terminal of that encoding, until it is taken."""

    encoding = ""  # else it is no attribute that can be set

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self.encoding = encoding

    def take(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Screen:
    """The terminal of `console`, between `start` and `stop`. `above` lines of it are left free."""

    def __init__(
        self,
        console: Console,
        picture: Picture,
        above: int,
        size: Callable[[], Size] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._picture, self._above = picture, above
        self._file = console.file  # whatever becomes of sys.stdout meanwhile
        console.file = self._file
        self._page = Page(console.encoding)
        self._aside = Console(
            file=self._page,
            force_terminal=True,
            color_system=cast("Any", console.color_system),
            no_color=console.no_color,
            emoji=False,
        )
        self._size = size or self._asked_size
        self._monotonic = monotonic
        self._queue: SimpleQueue[RenderableType | None] = SimpleQueue()  # None: the end
        self._thread = threading.Thread(target=self._run, name="screen", daemon=True)
        self._frame: list[str] = []
        self._framed_for = Size(0, 0)
        self._due = 0.0

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether anybody still writes: not when the terminal went away."""
        return self._thread.is_alive()

    def say(self, content: RenderableType) -> None:
        """Print that above the picture, soon; text as it is, the terminal wraps it.

        Also from another thread, or a signal's handler.
        """
        self._queue.put(content)

    def stop(self) -> None:
        """Print what was said, and take the picture away."""
        self._queue.put(None)
        self._thread.join(END_SECONDS)

    def _run(self) -> None:
        with suppress(OSError, ValueError):  # the terminal went away, and nobody looks any more
            is_over = False
            while not is_over:
                said, is_over = self._heard()
                self._write(self._turn(said, is_over=is_over))

    def _heard(self) -> tuple[list[RenderableType], bool]:
        """What has been said by the time that the picture is due, and whether that was the end."""
        said: list[RenderableType] = []
        with suppress(Empty):
            one = self._queue.get(timeout=max(0.0, self._due - self._monotonic()))
            time.sleep(TOGETHER_SECONDS if one is not None else 0.0)
            while one is not None:
                said.append(one)
                one = self._queue.get_nowait()
            return said, True
        return said, False

    def _turn(self, said: list[RenderableType], *, is_over: bool) -> str:
        """What is written now: new lines if there are any, and the picture below them."""
        text = "".join(self._rendered(one, self._size()) for one in said)
        if is_over:
            return f"\r{ERASE_BELOW}{text}"
        if not self._is_in_front():
            self._due = self._monotonic() + PAINT_SECONDS
            return text
        self._paint_if_due()
        if not self._frame:
            return f"\r{ERASE_BELOW}{text}" if text else ""
        above = f"\r{ERASE_BELOW}{text}" if text else "\r"
        lines = f"{ERASE_LINE}\n".join(["", *self._frame])
        return f"{above}{lines}{ERASE_LINE}{ERASE_BELOW}\x1b[{len(self._frame)}A\r"

    def _paint_if_due(self) -> None:
        size, now = self._size(), self._monotonic()
        if now < self._due and size == self._framed_for:
            return
        began, self._framed_for = time.thread_time(), size
        picture = self._picture(max(1, size.lines - self._above))
        text = "" if picture is None else self._rendered(picture, size)
        self._frame = text.removesuffix("\n").split("\n") if text else []
        dear = (time.thread_time() - began) / PAINT_SHARE
        self._due = now + (max(PAINT_SECONDS, dear) if self._frame else NOTHING_SECONDS)

    def _rendered(self, content: RenderableType, size: Size) -> str:
        if isinstance(content, str):
            return f"{shown(content, self._aside.encoding)}\n"
        self._aside.print(content, width=size.columns, height=size.lines)
        return self._page.take()

    def _write(self, text: str) -> None:
        if text:
            with suppress(BlockingIOError):  # somebody made the terminal impatient: the next time
                self._file.write(text)
                self._file.flush()

    def _asked_size(self) -> Size:
        try:
            found = os.get_terminal_size(self._file.fileno())
        except (OSError, ValueError):
            return Size(80, 24)
        return Size(found.columns or 80, found.lines or 24)

    def _is_in_front(self) -> bool:
        """Whether the terminal is ours at the moment: a job in the background paints nothing."""
        try:
            return os.tcgetpgrp(self._file.fileno()) == os.getpgrp()
        except (OSError, ValueError):  # it is nobody's
            return True


def can_paint(console: Console) -> bool:
    """Whether there is a terminal that can be painted on."""
    try:
        return console.file.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    except ValueError:  # closed
        return False
