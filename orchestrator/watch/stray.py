"""What other code in this process prints while a picture is on the terminal, line by line."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.text import Text


class Stray:
    """A text stream in another one's place, whose whole lines go to `say`."""

    def __init__(self, stream: TextIO, say: Callable[[str], None]) -> None:
        self._stream, self._say = stream, say
        self._line = ""
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._say(Text.from_ansi(line).plain)
        return len(text)

    def flush(self) -> None:
        """A line is said when it is whole."""

    def finish(self) -> None:
        """Say what has no end yet."""
        if self._line:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Bytes:
    """What such a stream takes as bytes."""

    def __init__(self, text: Stray) -> None:
        self._text = text

    def write(self, data: bytes) -> int:
        self._text.write(data.decode(errors="replace"))
        return len(data)

    def flush(self) -> None:
        pass


@contextmanager
def caught(say: Callable[[str], None]) -> Iterator[None]:
    """Within the block, what is printed on the terminal is said instead."""
    before = sys.stdout, sys.stderr
    strays = [Stray(one, say) if _is_terminal(one) else None for one in before]
    sys.stdout, sys.stderr = (
        one if stray is None else stray for one, stray in zip(before, strays, strict=True)
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stray in filter(None, strays):
            stray.finish()


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
