"""What an error prints, one line that says what to do about it, and its exit code."""

import errno
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
"""What the parser raises on a command line that is wrong; typer exports only its subclasses."""

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
"""By the name of the class, so that nothing is imported for it."""


def exit_code(error: Exception) -> int | None:
    """Return the process's exit code; None for a defect, which is shown with its traceback."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((EXIT_BY_ERROR[name] for name in names if name in EXIT_BY_ERROR), None)


def in_words(error: Exception) -> str:
    """Return what is wrong in one line."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error}. Make room and repeat the command; nothing paid is lost"
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return _of_file(error)
    if isinstance(error, _ParserError):
        return _of_parser(error)
    if type(error).__name__ == "ValidationError":
        from objectives.settings import in_words as faults  # imports pydantic

        return faults(error)  # type: ignore[arg-type] # known by its name alone
    return str(error)


def _of_file(error: OSError) -> str:
    way_on = {
        errno.ENOENT: "Make the directory it belongs into, or name another place",
        errno.EACCES: "Give this user access, or name another place",
    }.get(error.errno or 0, "Move it away, or name another --runs-dir or --out")
    return f"cannot use {error.filename2 or error.filename}: {error.strerror}. {way_on}"


def _of_parser(error: Any) -> str:
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""  # the help has been shown
    message = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    end = "" if message.endswith("?") else "."
    return f"{message}{end} See: {error.ctx.command_path if error.ctx else PROGRAM} --help"
