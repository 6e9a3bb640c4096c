"""Outcomes on disk: a line of JSON each, so that an interrupted benchmark goes on where it was."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.race import Outcome


@dataclass(frozen=True, slots=True)
class Result:
    """How a contender ended on a problem."""

    tier: str
    contender: str
    problem: str  # a `Key` as text
    group: str  # its noise
    outcome: Outcome
    version: str = ""  # of the contender

    @property
    def name(self) -> tuple[str, str, str]:
        """No two results have the same."""
        return self.tier, self.contender, self.problem

    @property
    def final(self) -> float:
        """The regret when the budget is spent."""
        return self.outcome.regrets[1.0]

    def line(self) -> str:
        given = {
            "tier": self.tier,
            "contender": self.contender,
            "problem": self.problem,
            "group": self.group,
            "version": self.version,
        }
        return json.dumps(given | self.outcome.as_json()) + "\n"

    @classmethod
    def parse(cls, line: str) -> "Result":
        read = json.loads(line)
        regrets = {float(spend): float(regret) for spend, regret in read.pop("regrets")}
        tier, contender, problem, group, version = (
            str(read.pop(name)) for name in ("tier", "contender", "problem", "group", "version")
        )
        return cls(tier, contender, problem, group, Outcome(regrets, **read), version)


def _lines(path: Path) -> Iterator[Result]:
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):  # or it was cut off when the machine was
            yield Result.parse(line)


class Store:
    """A folder of results, in a file per tier."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> list[Result]:
        """All that there is, each once."""
        paths = sorted(self._folder.glob("*.jsonl"))
        found = {result.name: result for path in paths for result in _lines(path)}
        return list(found.values())

    def add(self, results: Iterable[Result]) -> None:
        """What a kill has cut off is overwritten."""
        for result in results:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{result.tier}.jsonl"
            with path.open("ab+") as file:
                file.truncate(_whole(path))
                file.write(result.line().encode())


def _whole(path: Path) -> int:
    """Bytes up to the end of the last whole line."""
    return path.read_bytes().rfind(b"\n") + 1
