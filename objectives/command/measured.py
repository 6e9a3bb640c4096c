"""From what a program said and wrote to a measurement."""

import json
import math
import re
from pathlib import Path
from typing import Any

from objectives.api import Measurement, NoScoreError
from objectives.command import result_file
from objectives.command.config import CommandConfig
from objectives.command.hearing import Hearing, number
from objectives.command.result_file import ResultRefusedError
from objectives.command.where import Where
from objectives.programs.ended import Ended

COUNTS = ("steps", "tokens")
AMOUNTS = ("train_flops", "eval_flops", "train_seconds")
"""Measures that a `Measurement` has fields for; others are metrics."""


class Found:
    """The numbers that a program has left, wherever they are looked for."""

    def __init__(
        self, hearing: Hearing, directory: Path, attempt_id: str, not_before_ns: int
    ) -> None:
        self._hearing = hearing
        self._directory, self._attempt_id = directory, attempt_id
        self._not_before_ns = not_before_ns
        self._documents: dict[str, dict[str, Any] | None] = {}

    def value(self, place: Where) -> float | None:
        """None if it is not there. Raises ResultRefusedError where it is no number."""
        if place.line is not None:
            return self._printed(place.line)
        if place.pattern is not None:
            return self._matched(place.pattern)
        assert place.key is not None
        document = self._document(place)
        return None if document is None else result_file.value_at(document, place.key, place.path)

    def is_written(self, place: Where) -> bool:
        """Whether the file is there that the number is looked for in."""
        return self._document(place) is not None

    def unread(self, place: Where) -> str | None:
        """What stands in the place of the number; None if nothing does."""
        return None if place.line is None else self._hearing.unread.get(place.line)

    def inside(self, place: Where) -> str | None:
        """A line that says the key among other words; None if there was none."""
        return None if place.line is None else self._hearing.inside.get(place.line)

    def _printed(self, key: str) -> float | None:
        """Where its last word is no number, an earlier number is another step's."""
        value, unread = self._hearing.printed.get(key), self._hearing.unread.get(key)
        if value is not None and unread is not None:
            raise ResultRefusedError(
                f"expected a number alone after `{key}:`, where it was said last, got "
                f"{unread[:80]!r}"
            )
        return value

    def _matched(self, pattern: str) -> float | None:
        text = self._hearing.matched.get(pattern)
        if text is None:
            return None
        value = number(text.strip())
        if value is None:
            raise ResultRefusedError(f"expected a number where {pattern!r} matched, got {text!r}")
        return value

    def _document(self, place: Where) -> dict[str, Any] | None:
        path = place.path
        if str(path) not in self._documents:
            self._documents[str(path)] = result_file.read(
                self._directory, path, self._attempt_id, self._not_before_ns
            )
        return self._documents[str(path)]


def measurement(
    config: CommandConfig, hearing: Hearing, found: Found, ended: Ended, seconds: float
) -> Measurement:
    """What the evaluation measured: its training took the program's `seconds` if it says no other.

    Raises NoScoreError where the score, or a measure beside a finite one, is missing, and
    ResultRefusedError on what is no such number.
    """
    score = found.value(config.score)
    if score is None:
        raise NoScoreError(_missing("score", config.score, found, ended))
    measures: dict[str, float] = {}
    for name, place in config.measures.items():
        value = found.value(place)
        if value is not None and math.isfinite(value):
            measures[name] = value
        elif math.isfinite(score):
            what = f"measures.{name}"
            if value is None:
                raise NoScoreError(_missing(what, place, found, ended))
            raise ResultRefusedError(f"{what}: expected a finite number, got {value}")
    fields = {name: _amount(name, value) for name, value in measures.items() if _is_field(name)}
    free = {name: value for name, value in measures.items() if not _is_field(name)}
    metrics = hearing.metrics() | free
    return Measurement.model_validate(
        {"score": score, "train_seconds": seconds, **fields, "metrics": metrics}
    )


def _is_field(name: str) -> bool:
    return name in (*COUNTS, *AMOUNTS)


def _amount(name: str, value: float) -> float | int:
    if value < 0 or (value >= 2**63 and name in COUNTS):
        raise ResultRefusedError(f"measures.{name}: expected a number of 0 or more, got {value:g}")
    if name in AMOUNTS:
        return value
    if not value.is_integer():
        raise ResultRefusedError(f"measures.{name}: expected a whole number, got {value:g}")
    return int(value)


def _missing(what: str, place: Where, found: Found, ended: Ended) -> str:
    """One line for a person, and the program's last ones for the log."""
    where = f"{place} was"
    if place.file is not None and not found.is_written(place):
        where = f"{place.path}, which is to be in the evaluation's directory, was"
    if (unread := found.unread(place)) is not None:
        where = f"{place} (it is {unread[:80]!r}, and a pattern can say what of it is meant) was"
    elif (line := found.inside(place)) is not None:
        pattern = json.dumps(f"{re.escape(place.line or '')}\\s*[:=]\\s*(\\S+)")
        where = f"{place} (it is inside {line[:120]!r}: say {{ pattern = {pattern} }}) was"
    said = f"its last line was {ended.last_line[:120]!r}" if ended.last_line else "it said nothing"
    head = f"no {what}: the program exited with 0, and {where} not found; {said}"
    return "\n".join((head, f"Its last {len(ended.tail)} lines:", *ended.tail))
