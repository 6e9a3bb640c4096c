"""Races by the thousand, those that have no result yet, and their results on disk."""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from scripts.bench import suites
from scripts.bench.contenders import ENTRIES
from scripts.bench.problems import seed_of
from scripts.bench.race import (
    BEYOND,
    BUDGETS,
    CHECKPOINTS,
    DEAR_BEYOND,
    DEAR_CHECKPOINTS,
    Outcome,
    Race,
    Start,
)


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


CHUNK = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One contender on one problem with one budget."""

    tier: str
    contender: str
    problem: str

    @property
    def name(self) -> tuple[str, str, str]:
        return self.tier, self.contender, self.problem


def run(task: Task) -> Result:
    """Deterministic: the contender's seed is the problem's."""
    entry, budget = ENTRIES[task.contender], BUDGETS[task.tier]
    problem = suites.load(suites.Key.parse(task.problem))
    spends: tuple[float, ...] = DEAR_CHECKPOINTS if problem.is_dear else CHECKPOINTS
    if entry.goes_on:
        spends += DEAR_BEYOND if problem.is_dear else BEYOND
    start = Start(problem.default, budget, seed_of("contender", task.problem))
    try:
        contender = entry.make(start)
    except Exception as error:  # a peer's crash is a result too
        words = f"{type(error).__name__}: {error}"
        outcome = Outcome(dict.fromkeys(spends, 1.0), error=words)
    else:
        outcome = Race(contender, problem, budget, spends).run()
    return Result(task.tier, task.contender, task.problem, problem.group, outcome, entry.version)


def run_some(tasks: list[Task]) -> list[Result]:
    return [run(task) for task in tasks]


def run_all(tasks: list[Task], jobs: int, chunk: int = CHUNK) -> Iterator[list[Result]]:
    """Chunks of results as they are done, on so many processes."""
    chunks = [tasks[at : at + chunk] for at in range(0, len(tasks), chunk)]
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(run_some, some) for some in chunks]):
                yield done.result()
        finally:  # also where nobody wants the rest
            pool.shutdown(wait=False, cancel_futures=True)


def missing(tasks: Iterable[Task], found: Iterable[Result], retry: bool = False) -> list[Task]:
    """Those without a result of today's contender; with `retry` also those that crashed."""
    versions = {name: entry.version for name, entry in ENTRIES.items() if entry.is_here}
    there = {
        result.name
        for result in found
        if result.version == versions.get(result.contender) and not (retry and result.outcome.error)
    }
    return [task for task in tasks if task.name not in there]
