"""Races by the thousand, those alone that have no result yet."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from scripts.bench import suites
from scripts.bench.budgets import (
    BEYOND,
    BUDGETS,
    CHECKPOINTS,
    DEAR_BEYOND,
    DEAR_CHECKPOINTS,
)
from scripts.bench.contenders.api import Start
from scripts.bench.contenders.registry import ENTRIES
from scripts.bench.draws import seed_of
from scripts.bench.race import Outcome, Race
from scripts.bench.results import Result

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
    budget = budget.alone() if entry.alone else budget
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
