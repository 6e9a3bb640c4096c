"""What a program says and writes, read with suspicion, as a measurement."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from objectives.api import (
    DivergedError,
    Measurement,
    NoScoreError,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
)
from objectives.command.config import CommandConfig, Failure, Locator, compiled
from objectives.files import parse_json, read_regular
from objectives.programs.process import Exit

MOST_METRICS = 50
"""Names of the block that are kept; the ledger is no place for thousands."""

MOST_BYTES = 1_000_000
"""Of a result file."""

COUNTS = ("steps", "tokens")
AMOUNTS = ("train_flops", "eval_flops", "train_seconds")
"""Measures that a `Measurement` has fields for; others are metrics."""

_LINE = re.compile(r"\s*([^:=]{1,64}?)\s*[:=]\s*(\S{1,64})\s*")
_METRIC = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")
_FAILURES: Mapping[Failure, type[ObjectiveError]] = {
    "nan": DivergedError,
    "oom": OutOfMemoryError,
    "error": ProgramFailedError,
}


class ResultRefusedError(ObjectiveError):
    """There is a result, and it is not what was declared."""


class Results:
    """Listens to one program, and finds numbers in what it leaves. What it says last counts."""

    def __init__(self, config: CommandConfig, directory: Path, attempt_id: str) -> None:
        self._config, self._directory, self._attempt_id = config, directory, attempt_id
        self._failures = [(compiled(text), kind) for text, kind in config.failures.items()]
        patterns = {locator.pattern for locator in config.locators if locator.pattern}
        self._patterns = [compiled(pattern) for pattern in patterns]
        self._wanted = {locator.line for locator in config.locators if locator.line}
        self._room = MOST_METRICS if config.score.line else 0
        self._matches: dict[str, str] = {}  # what a pattern's group last was, by the pattern
        self._numbers: dict[str, float] = {}  # the block of `key: number` lines
        self._unread: dict[str, str] = {}  # what a wanted key last said, where that is no number
        self._lines: dict[str, str] = {}  # lines that say a wanted key among other words

    def listen(self, line: str) -> dict[str, float]:
        """Keep what counts; the finite numbers of the block, for whoever watches.

        Raises DivergedError, OutOfMemoryError or ProgramFailedError on a declared failure.
        """
        for pattern, kind in self._failures:
            if pattern.search(line):
                said = f"it said {line.strip()[:200]!r}, which {pattern.pattern!r} is"
                raise _FAILURES[kind](said)
        for pattern in self._patterns:
            for found in pattern.finditer(line):
                self._matches[pattern.pattern] = found[1] or ""
        return self._block(line) if self._wanted else {}

    def _block(self, line: str) -> dict[str, float]:
        name, *rest = (part.strip() for part in re.split("[:=]", line, maxsplit=1))
        found = _LINE.fullmatch(line)
        value = None if found is None else _number(found[2])
        if name not in self._wanted:
            for wanted in self._wanted:
                if re.search(rf"(?<!\w){re.escape(wanted)}\s*[:=]", line):
                    self._lines[wanted] = line.strip()
        if value is None:
            if name in self._wanted and any(rest):
                self._unread[name] = rest[0]
            return {}
        if not self._is_kept(name):
            return {}
        self._numbers[name] = value
        self._unread.pop(name, None)
        return {name: value} if math.isfinite(value) else {}

    def _is_kept(self, name: str) -> bool:
        if name in self._wanted or name in self._numbers:
            return True
        if self._room and _METRIC.fullmatch(name):
            self._room -= 1
            return True
        return False

    def measurement(self, exit_: Exit, seconds: float, since_ns: int) -> Measurement:
        """What the evaluation measured, in files not older than `since_ns` among others.

        Its training took the program's `seconds` if it says no other. Raises NoScoreError where
        the score, or a measure beside a finite one, is missing, and ResultRefusedError on what is
        no such number.
        """
        locators = {"score": self._config.score}
        locators |= {f"measures.{name}": where for name, where in self._config.measures.items()}
        files = {where.path for where in locators.values() if where.file is not None}
        documents = {path: self._document(path, since_ns) for path in files}
        values: dict[str, float] = {}
        for what, where in locators.items():
            value = self._value(where, documents)
            if value is not None and (what == "score" or math.isfinite(value)):
                values[what] = value
            elif math.isfinite(values.get("score", 0.0)):
                if value is None:
                    raise NoScoreError(self._missing(what, where, documents, exit_))
                raise ResultRefusedError(f"{what}: expected a finite number, got {value}")
        fields: dict[str, Any] = {"train_seconds": seconds}
        metrics = {
            name: value
            for name, value in self._numbers.items()
            if name not in self._wanted and math.isfinite(value)
        }
        for what, value in values.items():
            name = what.removeprefix("measures.")
            if name in (*COUNTS, *AMOUNTS):
                fields[name] = _amount(name, value)
            elif what != "score":
                metrics[name] = value
        return Measurement(score=values["score"], metrics=metrics, **fields)

    def _value(
        self, where: Locator, documents: Mapping[PurePosixPath, dict[str, Any] | None]
    ) -> float | None:
        """None if it is not there. Raises ResultRefusedError where it is no number."""
        if where.line is not None:
            value, unread = self._numbers.get(where.line), self._unread.get(where.line)
            if value is not None and unread is not None:  # the number is of an earlier step
                raise ResultRefusedError(
                    f"expected a number alone after `{where.line}:`, where it was said last, got "
                    f"{unread[:80]!r}"
                )
            return value
        if where.file is not None:
            document = documents[where.path]
            return None if document is None else _value_at(document, where.key or "", where.path)
        text = self._matches.get(where.pattern or "")
        value = None if text is None else _number(text.strip())
        if text is not None and value is None:
            raise ResultRefusedError(
                f"expected a number where {where.pattern!r} matched, got {text!r}"
            )
        return value

    def _document(self, name: PurePosixPath, since_ns: int) -> dict[str, Any] | None:
        """The JSON object in the file; None if there is no file."""
        path = self._directory / name
        if path.parent.resolve() != self._directory.resolve() / name.parent:
            raise ResultRefusedError(f"{name} lies behind a link: expected it in {self._directory}")
        try:
            data, modified_ns = read_regular(path, MOST_BYTES)
            document = parse_json(data)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ResultRefusedError(f"{name} cannot be read: {reason}") from None
        if modified_ns < since_ns:
            raise ResultRefusedError(f"{name} is older than the evaluation: it is not its result")
        if not isinstance(document, dict):
            raise ResultRefusedError(f"{name} holds {_type(document)}: expected an object")
        whose = document.get("attempt_id", self._attempt_id)
        if whose != self._attempt_id:
            raise ResultRefusedError(
                f"{name} is of another attempt: its attempt_id is {str(whose)[:80]!r}, and this "
                f"is {self._attempt_id!r}"
            )
        return document

    def _missing(
        self,
        what: str,
        where: Locator,
        documents: Mapping[PurePosixPath, dict[str, Any] | None],
        exit_: Exit,
    ) -> str:
        """One line for a person, and the program's last ones for the log."""
        place = f"{where} was"
        if where.file is not None and documents[where.path] is None:
            place = f"{where.path}, which is to be in the evaluation's directory, was"
        elif (unread := self._unread.get(where.line or "")) is not None:
            place = (
                f"{where} (it is {unread[:80]!r}, and a pattern can say what of it is meant) was"
            )
        elif (line := self._lines.get(where.line or "")) is not None:
            pattern = json.dumps(f"{re.escape(where.line or '')}\\s*[:=]\\s*(\\S+)")
            place = f"{where} (it is inside {line[:120]!r}: say {{ pattern = {pattern} }}) was"
        said = f"its last line was {exit_.last_line[:120]!r}" if exit_.last_line else ""
        head = f"no {what}: the program exited with 0, and {place} not found; "
        return "\n".join(
            (head + (said or "it said nothing"), f"Its last {len(exit_.tail)} lines:", *exit_.tail)
        )


def _number(text: str) -> float | None:
    """What a program means by it, NaN and infinity too; None where it means none."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _amount(name: str, value: float) -> float | int:
    if value < 0 or (value >= 2**63 and name in COUNTS):
        raise ResultRefusedError(f"measures.{name}: expected a number of 0 or more, got {value:g}")
    if name in COUNTS and not value.is_integer():
        raise ResultRefusedError(f"measures.{name}: expected a whole number, got {value:g}")
    return int(value) if name in COUNTS else value


def _value_at(document: dict[str, Any], key: str, name: PurePosixPath) -> float | None:
    """The number at `a.b.c`, NaN and infinity too; None if there is nothing.

    Raises ResultRefusedError on what is there and no number.
    """
    found: Any = document
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    if isinstance(found, bool) or not isinstance(found, int | float):
        shown = f" {found!r:.80}" if isinstance(found, str | bool) else ""
        hint = ". Some writers make null of NaN" if found is None else ""
        raise ResultRefusedError(
            f"{name}: {key} is typed wrongly: expected a number, got {_type(found)}{shown}{hint}"
        )
    try:
        return float(found)
    except OverflowError:
        raise ResultRefusedError(f"{name}: {key} is larger than any float") from None


def _type(value: Any) -> str:
    """As JSON calls it."""
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
