"""Where a program leaves numbers, and those numbers read with suspicion as a measurement."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

from objectives.api import (
    DivergedError,
    Measurement,
    NoScoreError,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
)
from objectives.files import parse_json, read_regular
from objectives.process import Exit

MOST_METRICS = 50
"""Names of other `key: number` lines that are kept; the ledger is no place for thousands."""

MOST_BYTES = 1_000_000
"""Of a result file."""

COUNTS = ("steps", "tokens")
AMOUNTS = ("train_flops", "eval_flops", "train_seconds")
"""Measures that a `Measurement` has fields for; others are metrics."""

KNOBS = "knobs.json"
"""A file of ours in the directory of a program's results."""

Failure = Literal["nan", "oom", "error"]

_DIRECTORY = "{directory}/"
_LINE = re.compile(r"\s*([^:=]{1,64}?)\s*[:=]\s*(.*?)\s*")
_METRIC = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")
_FAILURES: Mapping[Failure, type[ObjectiveError]] = {
    "nan": DivergedError,
    "oom": OutOfMemoryError,
    "error": ProgramFailedError,
}


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises ValueError on what is no regular expression."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


class Locator(BaseModel):
    """Where a number is: a `key: value` line, a key of a JSON file, or a pattern with one group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: str | None = Field(default=None, min_length=1)  # a setting that is text alone
    file: str | None = Field(default=None, min_length=1)
    key: str | None = Field(default=None, min_length=1)  # of the file: "a.b" is b in a
    pattern: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _text_is_a_line(cls, value: Any) -> Any:
        return {"line": value.strip()} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        ways = {name for name in ("line", "file", "key", "pattern") if getattr(self, name)}
        if ways not in ({"line"}, {"file", "key"}, {"pattern"}):
            raise ValueError(
                'expected one of "val_loss" (a line `val_loss: 0.5`), '
                '{ file = "result.json", key = "a.b" } and { pattern = "loss is (.*)" }'
            )
        if self.line is not None and re.search("[:=]", self.line):
            raise ValueError("expected a key without : or =, which come after it")
        if self.pattern is not None and compiled(self.pattern).groups != 1:
            raise ValueError("expected a pattern with one group, around the number")
        if self.file is not None:
            self._check_file(self.file)
        return self

    def _check_file(self, file: str) -> None:
        path = self.path
        if path.is_absolute() or ".." in path.parts or "\0" in file or "{" in str(path):
            raise ValueError(
                "a result lies in the evaluation's own directory: expected a name in it such as "
                f"result.json, which the program knows as {_DIRECTORY}result.json"
            )
        if str(path) in (".", KNOBS):
            raise ValueError(f"{path} is no program's to write: expected another name")

    @property
    def path(self) -> PurePosixPath:
        """Of the file, below the evaluation's directory."""
        assert self.file is not None
        return PurePosixPath(self.file.removeprefix(_DIRECTORY))

    @model_serializer
    def _as_set(self) -> str | dict[str, str]:
        if self.line is not None:
            return self.line
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        if self.line is not None:
            return f"a line `{self.line}: NUMBER`"
        return f"{self.key} in {self.path}" if self.file else f"a line like {self.pattern!r}"


class ResultRefusedError(ObjectiveError):
    """There is a result, and it is not what was declared."""


class Results:
    """Listens to one program, and finds numbers in what it leaves. What it says last counts."""

    def __init__(
        self,
        score: Locator,
        measures: Mapping[str, Locator],
        failures: Mapping[str, Failure],
        directory: Path,
    ) -> None:
        self._score, self._measures, self._directory = score, measures, directory
        self._failures = [(compiled(text), kind) for text, kind in failures.items()]
        locators = (score, *measures.values())
        self._patterns = [compiled(one.pattern) for one in locators if one.pattern]
        self._keys = {locator.line for locator in locators if locator.line}
        self._most_metrics = MOST_METRICS if score.line else 0
        self._said: dict[str, str] = {}  # by pattern or by key of a locator: the text found last
        self._inside: dict[str, str] = {}  # lines that say a key among other words
        self._metrics: dict[str, float] = {}

    def listen(self, line: str) -> dict[str, float]:
        """Keep what counts. Returns the finite number of a `key: number` line, for a heartbeat.

        Raises DivergedError, OutOfMemoryError or ProgramFailedError on a declared failure.
        """
        for pattern, kind in self._failures:
            if pattern.search(line):
                said = f"it said {line.strip()[:200]!r}, which {pattern.pattern!r} is"
                raise _FAILURES[kind](said)
        for pattern in self._patterns:
            for found in pattern.finditer(line):
                self._said[pattern.pattern] = (found[1] or "").strip()
        return self._key_line(line) if self._keys else {}

    def _key_line(self, line: str) -> dict[str, float]:
        found = _LINE.fullmatch(line)
        name, text = found.groups() if found else ("", "")
        if name in self._keys:
            if text:
                self._said[name] = text
        else:
            for key in self._keys:
                if re.search(rf"(?<!\w){re.escape(key)}\s*[:=]", line):
                    self._inside[key] = line.strip()
        value = _number(text)
        if value is None or not math.isfinite(value):
            return {}
        if name in self._keys:
            return {name: value}
        is_known = name in self._metrics
        if is_known or (_METRIC.fullmatch(name) and len(self._metrics) < self._most_metrics):
            self._metrics[name] = value
            return {name: value}
        return {}

    def measurement(self, exit_: Exit, seconds: float) -> Measurement:
        """What the evaluation measured. Its training took `seconds` if it says no other.

        Raises NoScoreError where the score, or a measure beside a finite one, is missing, and
        ResultRefusedError on what is no such number.
        """
        score = self._value("score", self._score, exit_)
        fields: dict[str, Any] = {"train_seconds": seconds}
        metrics = dict(self._metrics)
        for name, where in self._measures.items():
            what = f"measures.{name}"
            try:
                value = self._value(what, where, exit_)
                if not math.isfinite(value):
                    raise ResultRefusedError(f"{what}: expected a finite number, got {value}")
            except (NoScoreError, ResultRefusedError):
                if math.isfinite(score):
                    raise
                continue  # of a training that diverged
            if name in (*COUNTS, *AMOUNTS):
                fields[name] = _amount(name, value)
            else:
                metrics[name] = value
        return Measurement(score=score, metrics=metrics, **fields)

    def _value(self, what: str, where: Locator, exit_: Exit) -> float:
        """The number; NaN and infinity too. Raises as `measurement` does."""
        if where.file is not None:
            value = self._in_file(where)
        else:
            text = self._said.get(where.line or where.pattern or "")
            value = None if text is None else _number(text)
            if text is not None and value is None:
                raise ResultRefusedError(
                    f"{what}: expected a number alone in {where}, where it was said last, got "
                    f"{text[:80]!r}; a pattern can say what of it is meant"
                )
        if value is None:
            raise NoScoreError(self._missing(what, where, exit_))
        return value

    def _in_file(self, where: Locator) -> float | None:
        """The number at `a.b.c` of the file; None if there is nothing.

        Raises ResultRefusedError on what is there and no number.
        """
        found: Any = self._document(where.path)
        for part in (where.key or "").split("."):
            if not isinstance(found, dict) or part not in found:
                return None
            found = found[part]
        if isinstance(found, bool) or not isinstance(found, int | float):
            hint = ". Some writers make null of NaN" if found is None else ""
            raise ResultRefusedError(
                f"{where} is typed wrongly: expected a number, got {json.dumps(found)[:80]}{hint}"
            )
        try:
            return float(found)
        except OverflowError:
            raise ResultRefusedError(f"{where} is larger than any float") from None

    def _document(self, name: PurePosixPath) -> dict[str, Any] | None:
        """The JSON object in the file; None if there is no file."""
        path = self._directory / name
        if path.parent.resolve() != self._directory.resolve() / name.parent:
            raise ResultRefusedError(f"{name} lies behind a link: expected it in {self._directory}")
        try:
            document = parse_json(read_regular(path, MOST_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ResultRefusedError(f"{name} cannot be read: {reason}") from None
        if not isinstance(document, dict):
            raise ResultRefusedError(f"{name} holds no object but {json.dumps(document)[:80]}")
        return document

    def _missing(self, what: str, where: Locator, exit_: Exit) -> str:
        """One line for a person, and the program's last ones for the log."""
        inside = ""
        if line := self._inside.get(where.line or ""):
            pattern = json.dumps(f"{re.escape(where.line or '')}\\s*[:=]\\s*(\\S+)")
            inside = f" (it is inside {line[:120]!r}: say {{ pattern = {pattern} }})"
        said = f"its last line was {exit_.last_line[:120]!r}" if exit_.last_line else ""
        head = f"no {what}: the program exited with 0, and {where}{inside} was not found; "
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
