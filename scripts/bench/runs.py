"""Races in parallel processes, and their results on disk."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as checked

from scripts.bench import suites
from scripts.bench.contenders import ENTRIES
from scripts.bench.problems import seed_of
from scripts.bench.race import BEYOND, BUDGETS, CHECKPOINTS, Outcome, Race, Start

CHUNK = 16  # runs between two writes


class Task(NamedTuple):
    """One contender on one problem with one budget."""

    tier: str
    contender: str
    problem: str  # a `Key` as text


@checked(frozen=True, slots=True)
class Result:
    """How a contender ended on a problem."""

    tier: str
    contender: str
    problem: str
    group: str  # the problem's noise
    outcome: Outcome
    version: str = ""  # of the contender

    @property
    def task(self) -> Task:
        return Task(self.tier, self.contender, self.problem)

    @property
    def final(self) -> float:
        """The regret when the budget is spent."""
        return self.outcome.regrets[1.0]


RESULT = TypeAdapter(Result)


class Store:
    """A folder of results, one file per tier and one line per result."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> list[Result]:
        """Return the last result of each task; lines that a kill cut off are skipped."""
        paths = sorted(self._folder.glob("*.jsonl"))
        found = {result.task: result for path in paths for result in _results(path)}
        return list(found.values())

    def add(self, results: Iterable[Result]) -> None:
        for result in results:
            with (self._folder / f"{result.tier}.jsonl").open("ab") as file:
                file.write(RESULT.dump_json(result) + b"\n")


def _results(path: Path) -> Iterator[Result]:
    for line in path.read_bytes().splitlines():
        try:
            yield RESULT.validate_json(line)
        except ValueError:
            continue


def run(task: Task) -> Result:
    """Race once. Deterministic: the contender's seed follows from the problem."""
    entry, budget = ENTRIES[task.contender], BUDGETS[task.tier]
    problem = suites.load(suites.Key.parse(task.problem))
    checkpoints = CHECKPOINTS + BEYOND * entry.continues
    start = Start(problem.default, budget, seed_of("contender", task.problem))
    try:
        contender = entry.make(start)
    except Exception as error:  # a peer's crash is a result too
        text = f"{type(error).__name__}: {error}"
        outcome = Outcome(dict.fromkeys(checkpoints, 1.0), error=text)
    else:
        outcome = Race(contender, problem, budget, checkpoints).run()
    return Result(*task, problem.group, outcome, entry.version)


def run_some(tasks: list[Task]) -> list[Result]:
    return [run(task) for task in tasks]


def run_all(tasks: list[Task], jobs: int) -> Iterator[list[Result]]:
    """Yield chunks of results as they finish, on `jobs` processes."""
    chunks = [tasks[at : at + CHUNK] for at in range(0, len(tasks), CHUNK)]
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(run_some, some) for some in chunks]):
                yield done.result()
        finally:  # also when the caller stops early
            pool.shutdown(wait=False, cancel_futures=True)


def missing(tasks: Iterable[Task], results: Iterable[Result]) -> list[Task]:
    """Return the tasks that have no result from the contender's current version."""
    versions = {name: entry.version for name, entry in ENTRIES.items() if entry.is_installed}
    done = {result.task for result in results if result.version == versions.get(result.contender)}
    return [task for task in tasks if task not in done]
