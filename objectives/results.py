"""Where a program leaves numbers, and those numbers read with suspicion as a measurement."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_serializer,
    model_validator,
)

from objectives.api import (
    DivergedError,
    Measurement,
    NoScoreError,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
)
from objectives.files import read_plain
from objectives.process import last_word
from objectives.settings import in_words

MOST_BYTES = 1_000_000
"""Of a result file."""

Failure = Literal["nan", "oom", "error"]

SCORE = "score"
_FAILURES: Mapping[Failure, type[ObjectiveError]] = {
    "nan": DivergedError,
    "oom": OutOfMemoryError,
    "error": ProgramFailedError,
}


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


Text = Annotated[str, Field(min_length=1)]
Expression = Annotated[Text, AfterValidator(_compiles)]
"""Text of a regular expression."""


class Locator(BaseModel):
    """Where a number is: a `key: value` line, a key of a JSON file, or a pattern with one group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: Text | None = None  # a setting that is text alone
    file: Text | None = None  # below the evaluation's directory
    key: Text | None = None  # of the file: "a.b" is b in a
    pattern: Expression | None = None

    @model_validator(mode="before")
    @classmethod
    def _text_is_a_line(cls, value: Any) -> Any:
        return {"line": value.strip()} if isinstance(value, str) else value

    @model_serializer
    def _as_set(self) -> str | dict[str, str]:
        return self.line or {name: value for name, value in vars(self).items() if value}

    @model_validator(mode="after")
    def _check(self) -> Self:
        ways = {name for name, value in vars(self).items() if value}
        if ways not in ({"line"}, {"file", "key"}, {"pattern"}):
            raise ValueError(
                'expected one of "val_loss" (a line `val_loss: 0.5`), '
                '{ file = "result.json", key = "a.b" } and { pattern = "loss is (.*)" }'
            )
        if self.regex.groups != 1:
            raise ValueError("expected a pattern with one group, around the number")
        path = Path(self.file or "")
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"expected a file in the evaluation's own directory, got {path}")
        return self

    @property
    def regex(self) -> re.Pattern[str]:
        """Matches the number's text in a line of output."""
        return re.compile(self.pattern or rf"^\s*{re.escape(self.line or '')}\s*[:=]\s*(\S.*)$")

    def __str__(self) -> str:
        if self.line is not None:
            return f"a line `{self.line}: NUMBER`"
        return f"{self.key} in {self.file}" if self.file else f"a line like {self.pattern!r}"


@dataclass
class Results:
    """Listens to one program and finds the numbers that it leaves; later ones replace earlier."""

    locators: Mapping[str, Locator]  # by measure; of SCORE too
    failures: Mapping[str, Failure]  # by pattern
    directory: Path  # of the program
    _found: dict[str, str] = field(default_factory=dict)  # the last text that each locator matched

    def listen(self, line: str) -> dict[str, float]:
        """Keep what the locators match. Returns its finite numbers, for a heartbeat.

        Raises DivergedError, OutOfMemoryError or ProgramFailedError on a declared failure.
        """
        for pattern, kind in self.failures.items():
            if re.search(pattern, line):
                raise _FAILURES[kind](f"{pattern!r} matched {line.strip()[:200]!r}")
        numbers = {}
        for name, where in self.locators.items():
            for found in () if where.file else where.regex.finditer(line):
                self._found[name] = text = (found[1] or "").strip()
                value = _number(text)
                if value is not None and math.isfinite(value):
                    numbers[name] = value
        return numbers

    def measurement(self, tail: Sequence[str], seconds: float) -> Measurement:
        """Return what the evaluation measured; `train_seconds` is `seconds` unless declared.

        Beside a score that is not finite there are no measures. `tail`: the program's last lines.
        Raises NoScoreError where a number is missing, or is not a number.
        """
        score = self._value(SCORE, tail)
        names = self.locators.keys() - {SCORE} if math.isfinite(score) else ()
        found: dict[str, Any] = {name: self._value(name, tail) for name in names}
        own = Measurement.model_fields.keys() & found.keys()
        fields = {name: found.pop(name) for name in own}
        known = {"train_seconds": seconds, "metrics": found, **fields, "score": score}
        try:
            return Measurement.model_validate(known)
        except ValidationError as error:
            raise NoScoreError(f"measures: {in_words(error)}") from error

    def _value(self, name: str, tail: Sequence[str]) -> float:
        """Return the number, which may be NaN or infinite. Raises as `measurement` does."""
        where, text = self.locators[name], self._found.get(name, "")
        value = _number(text)
        if where.file is not None:
            value = self._in_file(where.file, (where.key or "").split("."))
        if value is not None:
            return value
        if text:
            raise NoScoreError(
                f"{name}: expected a number alone in {where}, got {text[:80]!r} in the last "
                "one; a pattern can say which part is meant"
            )
        known = where.line and any(re.search(rf"\b{re.escape(where.line)}\s*[:=]", t) for t in tail)
        inside = " (it is inside another line: say { pattern = ... })" if known else ""
        raise NoScoreError(
            f"no {name}: the program exited with 0, and {where}{inside} was not found; its last "
            f"line was {last_word(tail)[:120]!r}"
        )

    def _in_file(self, name: str, keys: list[str]) -> float | None:
        """Return the number at the keys of a JSON file; None if there is nothing.

        Raises NoScoreError on a file that is not readable, and on another value.
        """
        try:
            text = read_plain(self.directory / name, MOST_BYTES)
            found = json.loads(text, parse_int=float)  # a long one is infinite
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or error
            raise NoScoreError(f"{name} cannot be read: {reason}") from None
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found is None or isinstance(found, float):
            return found
        got = json.dumps(found)[:80]
        raise NoScoreError(f"{'.'.join(keys)} in {name}: expected a number, got {got}")


def _number(text: str) -> float | None:
    """Return the number that a program means by the text, NaN and infinity included, or None."""
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        text = text.replace(",", "")
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
