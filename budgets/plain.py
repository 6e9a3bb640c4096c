"""Text from anywhere, made fit to be shown."""

import re

_STEERS = re.compile(r"[\\`<\[\]|*~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""Characters that mean something to Markdown; an underscore does only at the edge of a word."""


def printable(text: str) -> str:
    """`text` as it can be shown: without characters that steer a terminal or turn text around."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str, most: int = 300) -> str:
    """What any ledger, table and terminal can hold of a cause."""
    clean = text.encode("utf-8", "replace").decode()
    line = " ".join("".join(c if c.isprintable() else " " for c in clean).split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def plain(text: str) -> str:
    """One line that says `text` in Markdown, and is no HTML, link, image or code in it."""
    line = " ".join(printable(text).split())
    return _STEERS.sub(r"\\\g<0>", line)
