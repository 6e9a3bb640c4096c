"""Every contender uses its whole budget, survives failures, and is deterministic."""

import warnings

import pytest

from scripts.bench.contenders import ENTRIES
from scripts.bench.problems import OwnProblem
from scripts.bench.race import BUDGETS, CHECKPOINTS, Outcome, Race, Start

EVERY = pytest.mark.parametrize("name", ENTRIES)


def raced(name: str, problem: OwnProblem, tier: str = "min") -> Outcome:
    """Race a contender; skip the test if its library is missing."""
    entry = ENTRIES[name]
    with warnings.catch_warnings(action="ignore"):
        pytest.importorskip(entry.needs)
        if name == "optuna cmaes":  # its sampler needs another package
            pytest.importorskip("cmaes")
        budget = BUDGETS[tier]
        contender = entry.make(Start(problem.default, budget, 5))
        return Race(contender, problem, budget, CHECKPOINTS).run()


@EVERY
def test_every_contender_runs_a_smallest_budget_and_repeats_it(name: str) -> None:
    first, second = (raced(name, OwnProblem("bowl", 1, "1/3")) for _ in range(2))
    assert first.error == ""
    assert first.regrets == second.regrets
    assert list(first.regrets) == list(CHECKPOINTS)
    assert first.evaluations == (0 if name == "default" else 16)


@EVERY
def test_every_contender_survives_failed_evaluations(name: str) -> None:
    outcome = raced(name, OwnProblem("cliff", 2, "0.1"))
    assert outcome.error == ""


def test_ours_asks_no_more_when_a_whole_generation_failed() -> None:
    search = ENTRIES["ours"].make(Start((0.5,) * 10, BUDGETS["min"], 5))
    trials = search.ask()
    search.tell(trials, [None] * len(trials))
    assert search.ask() == ()
    assert search.recommend() == (0.5,) * 10
