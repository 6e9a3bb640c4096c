"""The rules of a race: whole rounds, one seed per batch, and when a recommendation counts."""

from collections.abc import Sequence

import pytest

from scripts.bench.problems import Point
from scripts.bench.race import BUDGETS, Budget, Race, Trial

BUDGET = Budget("test", evaluations=12, workers=3, population=6)


class Line:
    """The score is the coordinate, and so is the regret."""

    default: Point = (1.0,)
    group = "0"

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def score(self, point: Point, seed: int) -> float | None:
        self.seeds.append(seed)
        return point[0] if point[0] >= 0 else None

    def regret(self, point: Point) -> float:
        return point[0]


class Batches:
    """Asks for batches of those sizes; recommends 1 / (1 + batches told)."""

    def __init__(self, *sizes: int, fails: int = -1, unit: float = 0.5) -> None:
        self._sizes, self._told, self._fails, self._unit = list(sizes), 0, fails, unit

    def ask(self) -> Sequence[Trial]:
        if self._told == self._fails:
            raise RuntimeError("as peers do")
        size = self._sizes.pop(0) if self._sizes else 0
        return [Trial((self._unit,), repeat) for repeat in range(size)]

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        assert len(trials) == len(scores)
        self._told += 1

    def recommend(self) -> Point:
        return (1 / (1 + self._told),)


def test_a_batch_takes_whole_rounds() -> None:
    outcome = Race(Batches(4, 4, 4), Line(), BUDGET, [1.0]).run()
    assert outcome.evaluations == 8  # the 4 rounds of 3 slots hold two batches of 4
    assert outcome.regrets == {1.0: 1 / 3}


def test_a_checkpoint_within_a_batch_sees_the_recommendation_before_it() -> None:
    outcome = Race(Batches(3, 6, 3), Line(), BUDGET, [0.25, 0.5, 0.75, 1.0]).run()
    assert outcome.regrets == {0.25: 1 / 2, 0.5: 1 / 2, 0.75: 1 / 3, 1.0: 1 / 4}


def test_a_batch_that_would_exceed_the_budget_does_not_start() -> None:
    outcome = Race(Batches(9, 6), Line(), BUDGET, [0.5, 1.0]).run()
    assert outcome.evaluations == 9
    assert outcome.regrets == {0.5: 1.0, 1.0: 1 / 2}


def test_after_a_crash_the_recommendation_is_the_default() -> None:
    outcome = Race(Batches(3, 3, 3, 3, fails=2), Line(), BUDGET, [0.25, 0.75, 1.0]).run()
    assert outcome.regrets == {0.25: 1 / 2, 0.75: 1.0, 1.0: 1.0}
    assert outcome.error == "RuntimeError: as peers do"


def test_the_trials_of_a_batch_share_a_seed_unless_they_repeat() -> None:
    line = Line()
    Race(Batches(2, 2), line, BUDGET, [1.0]).run()
    other = Line()
    Race(Batches(2, 2), other, BUDGET, [1.0]).run()
    assert line.seeds == other.seeds
    assert len(set(line.seeds)) == 4


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=str)
def test_a_tier_is_whole_rounds_and_generations(budget: Budget) -> None:
    assert budget.rounds * budget.workers == budget.evaluations
    assert budget.generations * budget.population == budget.evaluations
