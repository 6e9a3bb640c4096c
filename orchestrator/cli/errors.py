"""What an error is to a person: one line that says what to do about it, and an exit code."""

import errno
import sys
from typing import Any

import typer

from budgets.formatting import PROGRAM

EXIT_BAD_INPUT = 2
EXIT_BY_DECISION = {"done": 0, "pause": 3, "stop": 4}
EXIT_LOCKED = 5
EXIT_CORRUPT = 6
EXIT_ENGINE = 7
EXIT_STORAGE = 8
EXIT_SIGNAL = 128  # plus the signal's number

_ParserError: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises on a command line it does not understand; typer exports subclasses."""

EXIT_BY_ERROR: dict[str, int] = {
    "ValueError": EXIT_BAD_INPUT,
    _ParserError.__name__: EXIT_BAD_INPUT,
    "SetupError": EXIT_BAD_INPUT,
    "LedgerLockedError": EXIT_LOCKED,
    "LedgerCorruptError": EXIT_CORRUPT,
    "ImpossibleEventError": EXIT_CORRUPT,
    "ReplayError": EXIT_CORRUPT,
    "EngineError": EXIT_ENGINE,
    "LedgerStorageError": EXIT_STORAGE,
    "OSError": EXIT_STORAGE,
    "TrackerError": EXIT_STORAGE,
}
"""By the name of a class: whoever raises one has imported it, and nobody else has to."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def exit_code(error: Exception) -> int | None:
    """What the process leaves with; None: a mistake of ours, to be seen with its traceback."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((EXIT_BY_ERROR[name] for name in names if name in EXIT_BY_ERROR), None)


def in_words(error: Exception) -> str:
    """One line; of a model's complaints each with its option and what came."""
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return f"{error}. Make room and repeat the command; nothing paid is lost"
    if isinstance(error, _ParserError):
        return _of_parser(error)
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return _of_file(error)
    if type(error).__name__ != "ValidationError":
        return str(error)
    from objectives.settings import fault_in_words  # pydantic is there by now, and not for --help

    faults: Any = error
    return "; ".join(
        fault_in_words(fault, str(fault["loc"][-1]) if fault["loc"] else "")
        for fault in faults.errors()
    )


def _of_file(error: OSError) -> str:
    way_on = {
        errno.ENOENT: "Make the directory it belongs into, or name another place",
        errno.EACCES: "Give this user access, or name another place",
    }.get(error.errno or 0, "Move it away, or name another --runs-dir or --out")
    return f"cannot use {error.filename2 or error.filename}: {error.strerror}. {way_on}"


def _of_parser(error: Any) -> str:
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""  # the help has been shown: there is no more to say
    message = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    came = _value_of(getattr(error, "param", None))
    command = error.ctx.command_path if error.ctx else PROGRAM
    got = "" if came is None or repr(came) in message else f", got {came!r}"
    end = "" if message.endswith("?") else "."
    return f"{message}{got}{end} See: {command} --help"


def _value_of(option: Any) -> str | None:
    """What the command line gave an option, as far as it can be told."""
    words = sys.argv[1:]
    for name in getattr(option, "opts", ()):
        for word, following in zip(words, [*words[1:], None], strict=True):
            if word == name:
                return following
            if word.startswith(f"{name}="):
                return word.removeprefix(f"{name}=")
    return None
