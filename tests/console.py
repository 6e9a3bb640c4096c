"""Runs the commands of a document in a shell and compares their output with the document.

In a `console` block, lines that begin with `$ ` are commands; the other lines are the output of the
command above them. A line `...` stands for any lines and `...` within a line for any text; numbers
and durations may differ, words may not. A comment right above a block, `<!-- ... -->`, may say

    skip: WHY       the block is not run
    exit CODE       the exit code of its last command; 0 without it
    runs on         its last command keeps running once this output is seen; the next commands are
                    typed into a second terminal, and a block without a command shows how it ends

A block of `python` or `toml` that begins with `# NAME` is a file of that name.
"""

import io
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ptyprocess import PtyProcess

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>console|python|toml)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COLUMNS, LINES = 100, 40
PROMPT = "\x1e"
"""Surrounds the last exit code in the prompt."""

UNSEEN = re.compile(r"\x1b\[[0-?]*[ -/]*[@B-IL-ln-~]|\x1b[^\[]|\x07|\x1b(?:\[[0-?]*)?$")
"""Sequences that `Terminal` ignores, and an unfinished one at the end."""

TIME = r"\d[\d.]*(?: d| h| min| s)\b(?: \d\d? (?:h|min|s)\b)*"
SIZE = r"\d[\d.,]* [KMG]iB\b"
NUMBER = r"[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?"
BAR = r"[█▉▊▋▌▍▎▏▒░▁▂▃▄▅▆▇]"
TOKENS = {
    **{rf" *(?<![\w.]){one}": rf" *{one}" for one in (TIME, SIZE, NUMBER)},
    rf"{BAR}+": rf"{BAR}*",
    r"─+": r"─+",
    r" +": r" +",
}
"""What may differ in a line of output, and the pattern for it."""

TOKEN = re.compile("|".join(f"({token})" for token in TOKENS))
PID = re.compile(r"\bpid (\d+)")


@dataclass(frozen=True)
class Step:
    """A command and its output; without a command, the end of the one that runs on."""

    command: str | None
    shown: tuple[str, ...]
    code: int = 0
    runs_on: bool = False


@dataclass(frozen=True)
class File:
    name: str
    text: str


def read(document: str) -> Iterator[Step | File]:
    """Yield commands and files in order. Raises ValueError on an unknown comment."""
    for block in BLOCK.finditer(document):
        mark, kind, text = block["mark"] or "", block["kind"], block["text"]
        if kind == "console":
            yield from _steps(text, mark)
        elif text.startswith("# "):
            yield File(text[2 : text.index("\n")], text)


def _steps(text: str, mark: str) -> Iterator[Step]:
    if mark.startswith("skip: "):
        return
    ends = re.fullmatch(r"exit (\d+)", mark)
    if mark and not ends and mark != "runs on":
        raise ValueError(f"expected skip: WHY, exit CODE or runs on, got {mark!r}")
    code = int(ends[1]) if ends else 0
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    if parts[0]:
        yield Step(None, tuple(parts[0].splitlines()), code)
    for number, part in enumerate(parts[1:], 1):
        command, *shown = part.splitlines()
        is_last = number == len(parts) - 1
        yield Step(
            command, tuple(shown), code if is_last else 0, runs_on=is_last and mark == "runs on"
        )


def unlike(shown: tuple[str, ...], seen: list[str], *, so_far: bool = False) -> str | None:
    """Return the first part of `shown` that is not in `seen` at its place; None if all are.

    Parts are separated by `...`. Line ends do not matter: a terminal folds lines. With `so_far`
    more output may follow.
    """
    there, place = _words(seen), 0
    parts = _words(shown).split("...")
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1 and not so_far
        wanted = re.compile(_pattern(part) + (r"\Z" if is_last else ""))
        found = (wanted.search if number else wanted.match)(there, place)
        if found is None:
            return part.strip() or f"nothing more, but there is: {there[place:].strip()}"
        place = found.end() - there[: found.end()].endswith(" ")
    return None


def _words(lines: Sequence[str]) -> str:
    return f" {' '.join(' '.join(lines).split())} "


def _pattern(line: str) -> str:
    def place(found: re.Match[str]) -> str:
        return list(TOKENS.values())[(found.lastindex or 1) - 1]

    parts, end = [], 0
    for found in TOKEN.finditer(line):
        parts += [re.escape(line[end : found.start()]), place(found)]
        end = found.end()
    return "".join([*parts, re.escape(line[end:])])


class Terminal(io.StringIO):
    """A screen that wraps and scrolls; it knows the control sequences of the live view only."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        super().__init__()
        self.columns, self.lines = columns, lines
        self.rows: list[str] = [""]
        self.row = self.column = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        rest = text
        while rest:
            rest = self._sequence(rest) if rest.startswith("\x1b[") else self._character(rest)
        return len(text)

    def _sequence(self, text: str) -> str:
        end = next(place for place in range(2, len(text)) if text[place].isalpha())
        argument, what = text[2:end], text[end]
        if what == "A":
            self.row = max(self._top, self.row - int(argument or 1))
        elif what == "K":
            self.rows[self.row] = self.rows[self.row][: self.column]
        elif what == "J":
            self.rows[self.row] = self.rows[self.row][: self.column]
            del self.rows[self.row + 1 :]
        else:
            assert what == "m", f"an unknown sequence: {text[: end + 1]!r}"
        return text[end + 1 :]

    def _character(self, text: str) -> str:
        one = text[0]
        if one == "\r":
            self.column = 0
        elif one == "\n":
            self._down()
        else:
            if self.column == self.columns:
                self._down()
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + one + row[self.column + 1 :]
            self.column += 1
        return text[1:]

    def _down(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append("")

    @property
    def _top(self) -> int:
        """The first row on the screen; the cursor cannot reach rows above it."""
        return max(0, len(self.rows) - self.lines)

    def seen(self) -> list[str]:
        """Return all rows that were not overwritten, also those that have scrolled away."""
        return [row.rstrip() for row in self.rows]


class Shell:
    """A bash on a terminal of its own."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._process = PtyProcess.spawn(
            ["bash", "--norc", "--noprofile", "--noediting", "-i"],
            cwd=directory,
            env={**environment, "PS1": f"{PROMPT}$?{PROMPT}", "TERM": "xterm-256color"},
            dimensions=(LINES, COLUMNS),
        )
        self._ours = self._process.fd
        self._raw, self._more = b"", threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        self.ended(30)
        self.run("stty -echo", 30)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGHUP)  # bash passes it on to what it runs
        self._process.wait()
        self._process.close()

    def run(self, command: str, seconds: float) -> tuple[int, list[str]]:
        """Return the command's exit code and the terminal when it has ended."""
        self._type(command)
        return self.ended(seconds)

    def start(self, command: str, shown: tuple[str, ...], seconds: float) -> list[str]:
        """Return the terminal when these lines are seen, the command has ended or time is up."""
        self._type(command)
        self._until(
            lambda: self._code() is not None or unlike(shown, self.seen(), so_far=True) is None,
            seconds,
        )
        return self.seen()

    def ended(self, seconds: float) -> tuple[int, list[str]]:
        """Return the exit code of the running command and the terminal when it has ended."""
        self._until(lambda: self._code() is not None, seconds)
        code, seen = self._code(), self.seen()
        assert code is not None, f"no end within {seconds:.0f} s:\n" + "\n".join(seen)
        return code, seen

    def seen(self) -> list[str]:
        """Return the terminal since the last command, also what has scrolled away."""
        terminal = Terminal(10_000, LINES)  # wide: it folds no lines
        text = self._raw.decode(errors="replace").split(PROMPT)[0]
        terminal.write(UNSEEN.sub("", text))
        return terminal.seen()

    def _type(self, command: str) -> None:
        self._raw = b""
        os.write(self._ours, f"{command}\n".encode())

    def _code(self) -> int | None:
        """The exit code of the last command, once it has ended."""
        found = re.search(f"{PROMPT}(\\d+){PROMPT}".encode(), self._raw)
        return int(found[1]) if found else None

    def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        with self._more:
            self._more.wait_for(holds, seconds)

    def _read(self) -> None:
        """Read all the time, as a terminal does, so that no writer waits."""
        with suppress(OSError):  # the terminal is closed
            while some := os.read(self._ours, 1 << 16):
                with self._more:
                    self._raw += some
                    self._more.notify_all()


@dataclass
class Follower:
    """Follows a document: runs its commands and compares their output."""

    directory: Path
    environment: Mapping[str, str]
    seconds: float
    _shells: list[Shell] = field(default_factory=list)
    _pids: dict[str, str] = field(default_factory=dict)  # the document's, and the real ones
    _running: str | None = None

    def follow(self, document: str) -> None:
        """Raise AssertionError where something differs from the document."""
        try:
            for step in read(document):
                if isinstance(step, File):
                    _, where = self._shell(0).run("pwd", self.seconds)
                    Path(where[0], step.name).write_text(step.text)
                else:
                    self._take(step)
        finally:
            for shell in self._shells:
                shell.close()

    def _take(self, step: Step) -> None:
        if step.command is None:
            seen = self._end(step)
        elif step.runs_on:
            seen = self._shell(0).start(step.command, step.shown, self.seconds)
            _compare(step, step.command, seen, so_far=True)
            self._running = step.command
        else:
            seen = self._run(step, step.command)
        pids = (PID.findall("\n".join(lines)) for lines in (step.shown, seen))
        self._pids.update(zip(*pids, strict=False))

    def _run(self, step: Step, command: str) -> list[str]:
        for shown, real in self._pids.items():
            command = re.sub(rf"\b{shown}\b", real, command)
        shell = self._shell(0 if self._running is None else 1)
        code, seen = shell.run(command, self.seconds)
        assert code == step.code, _otherwise(command, f"exit code {code}, not {step.code}", seen)
        _compare(step, command, seen)
        return seen

    def _end(self, step: Step) -> list[str]:
        command, self._running = f"the end of {self._running}", None
        code, seen = self._shell(0).ended(self.seconds)
        assert code == step.code, _otherwise(command, f"exit code {code}, not {step.code}", seen)
        # The live view of a killed process may still be there, until its viewer erases it.
        _compare(replace(step, shown=("...", *step.shown)), command, seen, so_far=True)
        return seen

    def _shell(self, number: int) -> Shell:
        while len(self._shells) <= number:
            self._shells.append(Shell(self.directory, self.environment))
        return self._shells[number]


def _compare(step: Step, command: str, seen: list[str], *, so_far: bool = False) -> None:
    missing = unlike(step.shown, seen, so_far=so_far)
    assert missing is None, _otherwise(command, f"not seen: {missing}", seen)


def _otherwise(command: str, what: str, seen: list[str]) -> str:
    return "\n".join([f"{command}: {what}", *seen])
