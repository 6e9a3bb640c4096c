"""Every contender runs its budget to the end, lives with failures, and repeats by its seed."""

import warnings

import pytest

from scripts.bench.contenders import ENTRIES
from scripts.bench.problems import OwnProblem
from scripts.bench.race import BUDGETS, CHECKPOINTS, Outcome, Race, Start

EVERY = pytest.mark.parametrize("name", ENTRIES)


def raced(name: str, problem: OwnProblem, tier: str = "min") -> Outcome:
    """Skips where the contender's library is missing."""
    entry = ENTRIES[name]
    with warnings.catch_warnings(action="ignore"):
        pytest.importorskip(entry.needs)
        if name == "optuna cmaes":  # its sampler wants another package
            pytest.importorskip("cmaes")
        budget = BUDGETS[tier]
        contender = entry.make(Start(problem.default, budget, 5))
        return Race(contender, problem, budget, CHECKPOINTS).run()


@EVERY
def test_every_contender_runs_a_smallest_budget_to_its_end_and_the_same_again(name: str) -> None:
    first, second = (raced(name, OwnProblem("bowl", 1, "1/3")) for _ in range(2))
    assert first.error == ""
    assert first.regrets == second.regrets
    assert list(first.regrets) == list(CHECKPOINTS)
    assert first.evaluations + first.idle == 16


@EVERY
def test_every_contender_lives_with_failed_evaluations(name: str) -> None:
    outcome = raced(name, OwnProblem("cliff", 2, "0.1"))
    assert outcome.error == ""


def test_ours_asks_no_more_when_nothing_of_a_generation_is_healthy() -> None:
    search = ENTRIES["ours"].make(Start((0.5,) * 10, BUDGETS["min"], 5))
    trials = search.ask()
    search.tell(trials, [None] * len(trials))
    assert search.ask() == ()
    assert search.recommend() == (0.5,) * 10
