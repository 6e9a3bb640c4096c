"""What a program says, line by line: numbers that are asked for, and failures by their words."""

import math
import re
from collections.abc import Mapping

from objectives.api import DivergedError, ObjectiveError, OutOfMemoryError
from objectives.command.config import CommandConfig, Failure
from objectives.command.where import compiled
from objectives.programs.ended import ProgramFailedError

MOST_METRICS = 50
"""Names of a block that are kept; the ledger is no place for thousands."""

_LINE = re.compile(r"\s*([^:=]{1,64}?)\s*[:=]\s*(\S{1,64})\s*")
_METRIC = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")
_FAILURES: Mapping[Failure, type[ObjectiveError]] = {
    "nan": DivergedError,
    "oom": OutOfMemoryError,
    "error": ProgramFailedError,
}


class Hearing:
    """Listens to one program. What it says last counts."""

    def __init__(self, config: CommandConfig) -> None:
        self.matched: dict[str, str] = {}  # what a pattern's group last was, by the pattern
        self.printed: dict[str, float] = {}  # the block of `key: number` lines
        self.unread: dict[str, str] = {}  # what a wanted key last said, where that is no number
        self.inside: dict[str, str] = {}  # lines that say a wanted key among other words
        self._failures = [(compiled(text), kind) for text, kind in config.failures.items()]
        patterns = {place.pattern for place in config.places if place.pattern is not None}
        self._patterns = [compiled(pattern) for pattern in patterns]
        self._wanted = {place.line for place in config.places if place.line is not None}
        self._room = MOST_METRICS if config.score.line is not None else 0

    def hear(self, line: str) -> dict[str, float]:
        """Keep what counts; the finite numbers of the block, for whoever watches.

        Raises DivergedError, OutOfMemoryError or ProgramFailedError on a declared failure.
        """
        for pattern, kind in self._failures:
            if pattern.search(line):
                raise _FAILURES[kind](
                    f"it said {line.strip()[:200]!r}, which {pattern.pattern!r} is"
                )
        for pattern in self._patterns:
            for found in pattern.finditer(line):
                self.matched[pattern.pattern] = found[1] or ""
        return self._block(line) if self._wanted else {}

    def metrics(self) -> dict[str, float]:
        """The finite numbers of the block, but for those that are looked for by name."""
        return {
            name: value
            for name, value in self.printed.items()
            if name not in self._wanted and math.isfinite(value)
        }

    def _block(self, line: str) -> dict[str, float]:
        found = _LINE.fullmatch(line)
        value = None if found is None else number(found[2])
        if found is None or value is None:
            self._unlike(line)
            return {}
        name = found[1]
        if name not in self._wanted:
            self._among_others(line)
        if not self._is_kept(name):
            return {}
        self.printed[name] = value
        self.unread.pop(name, None)
        return {name: value} if math.isfinite(value) else {}

    def _unlike(self, line: str) -> None:
        """Remember `loss: 0.5 (best)`: what the key said before is not its last word."""
        name, *rest = (part.strip() for part in re.split("[:=]", line, maxsplit=1))
        if name in self._wanted and any(rest):
            self.unread[name] = rest[0]
        else:
            self._among_others(line)

    def _among_others(self, line: str) -> None:
        """Remember `INFO epoch 3 loss: 0.5`, to say why that is no line `loss: NUMBER`."""
        for name in self._wanted:
            if name is not None and re.search(rf"(?<!\w){re.escape(name)}\s*[:=]", line):
                self.inside[name] = line.strip()

    def _is_kept(self, name: str) -> bool:
        if name in self._wanted or name in self.printed:
            return True
        if self._room and _METRIC.fullmatch(name):
            self._room -= 1
            return True
        return False


def number(text: str) -> float | None:
    """What a program means by it, NaN and infinity too; None where it means none."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
