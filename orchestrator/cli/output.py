"""What a command prints: its answer, or one line about an error; and the exit code of either."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

from budgets.formatting import PROGRAM, printable

EXIT_BAD_INPUT = 2
EXIT_BY_DECISION = {"done": 0, "pause": 3, "stop": 4}
EXIT_CORRUPT = 6
EXIT_STORAGE = 8
EXIT_SIGNAL = 128  # plus the signal's number

EXIT_BY_ERROR: dict[str, int] = {
    "ValueError": EXIT_BAD_INPUT,
    "UsageError": EXIT_BAD_INPUT,  # of the parser
    "ModuleNotFoundError": EXIT_BAD_INPUT,
    "SetupError": EXIT_BAD_INPUT,
    "ObjectiveError": 1,
    "LedgerLockedError": 5,
    "LedgerCorruptError": EXIT_CORRUPT,
    "ImpossibleEventError": EXIT_CORRUPT,
    "ReplayError": EXIT_CORRUPT,
    "EngineError": 7,
    "LedgerStorageError": EXIT_STORAGE,
    "OSError": EXIT_STORAGE,
}
"""By the name of the class, so that nothing is imported for it."""


@dataclass(frozen=True)
class Answer:
    """What a command found: one JSON document, or lines, or a page in Markdown before them."""

    document: Any  # or a function that returns it
    lines: Iterable[str] = ()
    page: str = ""
    code: int = 0  # the exit code


def show(answer: Answer, *, as_json: bool) -> int:
    """Print the answer; return its exit code."""
    if as_json:
        print_json(answer.document() if callable(answer.document) else answer.document)
        return answer.code
    if answer.page:
        print_markdown(answer.page)
    for line in answer.lines:
        print(printable(line))
    return answer.code


def print_json(content: Any) -> None:
    from budgets.storage import document

    sys.stdout.flush()
    sys.stdout.buffer.write(document(content))  # UTF-8, whatever the terminal's charset


def print_markdown(text: str) -> None:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    class Whole(TableElement):
        """A table whose words are never cut: in a pipe it is as wide as it has to be."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            room = options if console.is_terminal else options.update(max_width=100_000)
            for table in super().__rich_console__(console, options):
                assert isinstance(table, Table)
                for column in table.columns:
                    column.overflow = "fold"
                yield from console.render(table, room)

    page = Markdown(text)
    page.elements = {**Markdown.elements, "table_open": Whole}  # type: ignore[misc]
    width = None if sys.stdout.isatty() else 110
    # `:train:` in a name is not an emoji
    own = Console(width=width, emoji=False)
    # a reader that leaves changes no exit code
    own.on_broken_pipe = lambda: silence(sys.stdout)  # type: ignore[method-assign]
    own.print(page, crop=False)


def silence(stream: IO[str]) -> None:
    """Send everything that it prints from now on nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# Errors


def exit_code(error: Exception) -> int | None:
    """Return the process's exit code; None for a defect, which is shown with its traceback."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((EXIT_BY_ERROR[name] for name in names if name in EXIT_BY_ERROR), None)


def in_words(error: Any) -> str:
    """Return what is wrong in one line, and what to do about it."""
    said = str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        said = ""  # the help has been shown
    elif hasattr(error, "format_message"):  # of the parser
        message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
        end = "" if message.endswith("?") else "."
        said = f"{message}{end} See: {error.ctx.command_path if error.ctx else PROGRAM} --help"
    elif isinstance(error, ModuleNotFoundError):
        from objectives.api import missing_package

        said = missing_package(error.name)
    elif isinstance(error, OSError) and isinstance(error.filename, str):
        place = error.filename2 or error.filename
        said = f"cannot use {place}: {error.strerror}. Name another --runs-dir or --out"
    elif type(error).__name__ == "ValidationError":
        from objectives.settings import in_words as faults  # imports pydantic

        said = faults(error)
    return said
