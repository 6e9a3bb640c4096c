"""Numbers, names, commands and tables as text, and untrusted text made safe to show."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

NAME = "CMAES_PROGRAM"
"""The environment variable with the command of a script that starts this program."""


def _program() -> str:
    """The command that calls this program again from the same directory."""
    if said := os.environ.get(NAME):
        return said
    called, rest = Path(sys.argv[0]), ""
    if called.parts[-2:] == ("orchestrator", "__main__.py"):
        called, rest = Path(sys.executable), " -m orchestrator"
    elif called.name != "orchestrator":
        return "python -m orchestrator"  # inside another program
    found = shutil.which(called.name)
    is_found = found and os.path.abspath(found) == os.path.abspath(called)
    return (called.name if is_found else shell_word(str(called))) + rest


_STEERS = re.compile(r"[\\`<\[\]|*~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""Characters that mean something to Markdown; an underscore does only at the edge of a word."""


def printable(text: str) -> str:
    """`text` without characters that control a terminal or reverse text."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str, most: int = 300) -> str:
    """`text` in one printable line of at most so many characters."""
    clean = text.encode("utf-8", "replace").decode()
    line = " ".join("".join(c if c.isprintable() else " " for c in clean).split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def plain(text: str) -> str:
    """`text` as one line of Markdown, without HTML, links, images or code."""
    line = " ".join(printable(text).split())
    return _STEERS.sub(r"\\\g<0>", line)


def shell_word(text: str) -> str:
    """`text` quoted for bash and zsh, in one printable line."""
    if text.isprintable():
        return shlex.quote(text)
    codes = (f"\\x{byte:02x}" for byte in text.encode("utf-8", "surrogateescape"))
    return f"$'{''.join(codes)}'"


def command(*words: str) -> str:
    """A command of this program in one line to copy, its words quoted where needed."""
    return " ".join([PROGRAM, *map(shell_word, words)])


PROGRAM = _program()
"""How every printed command begins."""


# Numbers, times, sizes and lists


def number(value: float | None, digits: int = 5) -> str:
    """`3.1385`: five digits, as of scores, unless others are given."""
    return "-" if value is None else f"{value:.{digits}g}"


def better_when(direction: str) -> str:
    """`lower is better`, or `higher is better` where the score is maximized."""
    return "lower is better" if direction == "minimize" else "higher is better"


def percent(share: float, digits: int = 4) -> str:
    """`99%`, `99.5%`, `1.234%`: up to four digits, or to the point."""
    size = 100 * share
    return f"{size:.{digits}g}%" if abs(size) < 999.5 else f"{size:.0f}%"


def better(share: float) -> str:
    """`1.3% better`, `0.204% worse`, `no better`, with three digits.

    With fewer, a gain just below a limit would look as if it reached the limit.
    """
    if round(share, 5) == 0:
        return "no better"
    return f"{percent(abs(share), 3)} {'worse' if share < 0 else 'better'}"


def duration(seconds: float) -> str:
    """`0.031 s`, `2.0 s`, `41 s`, `3 min 20 s`, `2 h 05 min`."""
    if 0 < seconds < 9.95:
        return f"{seconds:#.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def sentence_case(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def counted(count: int, what: str) -> str:
    """`1 seed`, `8 seeds`, `no seeds`; `2 boundaries`."""
    if count == 1:
        return f"1 {what}"
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count or 'no'} {plural}"


def listed(words: Iterable[object], most: int | None = None) -> str:
    """`a, b and c`; `a, b and 5 more` for more than `most`."""
    every = [str(word) for word in words]
    if most is not None and len(every) > most:
        every = [*every[: most - 1], f"{len(every) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), *every[-1:])))


# Names and tables


def shortened(names: Sequence[str], width: int) -> list[str]:
    """The names, each longer than `width` without its middle; those that look alike numbered."""
    tail = 2 * (width - 1) // 3  # levels that differ and `_base` stand at the end
    cut = [n if len(n) <= width else f"{n[: width - 1 - tail]}…{n[-tail:]}" for n in names]
    return [
        short if cut.count(short) == 1 else f"{number}…{name[len(str(number)) + 1 - width :]}"
        for number, (name, short) in enumerate(zip(names, cut, strict=True), 1)
    ]


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a Markdown table. `>cost` aligns a column right."""
    names = list(columns)
    sides = ("--:" if name.startswith(">") else "---" for name in names)
    return [
        "|" + "".join(f" {name.lstrip('>')} |".replace("  |", " |") for name in names),
        f"|{'|'.join(sides)}|",
        *(f"| {' | '.join(map(str, cells))} |" for cells in rows),
    ]
