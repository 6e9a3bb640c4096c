"""Where a number is found in what a program leaves: three ways to say it."""

import re
from pathlib import PurePosixPath
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

KNOBS = "knobs.json"
"""What an evaluation leaves for the program beside its results."""

_OWN = "{directory}/"


class Where(BaseModel):
    """A `key: value` line (text alone), a key of a JSON file, or a pattern with one group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: str | None = Field(default=None, min_length=1)
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
            _check_own(self.file)
        return self

    @property
    def path(self) -> PurePosixPath:
        """Of the file, below the evaluation's directory."""
        assert self.file is not None
        return PurePosixPath(self.file.removeprefix(_OWN))

    @property
    def in_words(self) -> str:
        """Which of several numbers it is, for a person."""
        if self.line is not None:
            return f"the last line `{self.line}: NUMBER` of its output"
        if self.file is not None:
            return f"{self.key} in {self.path}, which it writes into the evaluation's directory"
        return f"the last match of {self.pattern!r} in its output"

    @model_serializer
    def _as_given(self) -> str | dict[str, str]:
        if self.line is not None:
            return self.line
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        if self.line is not None:
            return f"a line `{self.line}: NUMBER`"
        return f"{self.key} in {self.path}" if self.file else f"a line like {self.pattern!r}"


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises ValueError on what is no regular expression."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def _check_own(file: str) -> None:
    path = PurePosixPath(file.removeprefix(_OWN))
    if path.is_absolute() or ".." in path.parts or "\0" in file or "{" in str(path):
        raise ValueError(
            f"a result lies in the evaluation's own directory, which no other one has: expected "
            f"a name in it such as result.json, which the program knows as {_OWN}result.json"
        )
    if str(path) in (".", KNOBS):
        raise ValueError(f"{path} is no program's to write: expected another name")
