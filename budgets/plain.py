"""Text from anywhere, made fit to be shown."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

NAME = "CMAES_PROGRAM"
"""The variable in which a script that starts this program says how it was called itself."""


def _program() -> str:
    """How this program was called, so that a shell in the same directory finds it again."""
    if said := os.environ.get(NAME):
        return said
    called = Path(sys.argv[0])
    if called.name == "orchestrator":  # an installed command
        found = shutil.which(called.name)
        return called.name if found and _is_same(found, called) else shell_word(str(called))
    if called.parts[-2:] != ("orchestrator", "__main__.py"):  # a library of another program
        return "python -m orchestrator"
    names = (n for n in ("python", "python3") if (p := shutil.which(n)) and _is_same(p, _PYTHON))
    return f"{next(names, shell_word(str(_PYTHON)))} -m orchestrator"


_PYTHON = Path(sys.executable)


def _is_same(found: str, other: Path) -> bool:
    """Whether both are one file of one directory: those of two environments may be one link."""
    one, two = os.path.abspath(found), os.path.abspath(other)
    return os.path.dirname(one) == os.path.dirname(two) and os.path.samefile(one, two)


_STEERS = re.compile(r"[\\`<\[\]|*~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""Characters that mean something to Markdown; an underscore does only at the edge of a word."""

_ESCAPES = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


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


def shell_word(text: str) -> str:
    """`text` as bash and zsh read it back, in one line that steers no terminal."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def command(*words: str) -> str:
    """A command of this program in one line to copy. Words are quoted where a shell wants it."""
    return " ".join([PROGRAM, *map(shell_word, words)])


def move_command(there: Path, to: Path) -> str:
    """What moves a file or a directory, in one line to copy."""
    return f"mv {shell_word(str(there))} {shell_word(str(to))}"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no text
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"


PROGRAM = _program()
"""How every command begins that a person is told to type."""
