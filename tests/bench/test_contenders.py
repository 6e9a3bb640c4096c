"""Every contender runs its budget to the end, lives with failures, and repeats by its seed."""

import warnings

import numpy as np
import pytest

from scripts.bench.contenders import ENTRIES, REFERENCE, Surrogate
from scripts.bench.problems import OwnProblem, Point
from scripts.bench.race import BUDGETS, CHECKPOINTS, Outcome, Race, Start

EVERY = pytest.mark.parametrize("name", ENTRIES)


def raced(name: str, problem: OwnProblem, tier: str = "min") -> Outcome:
    """Skips where the contender's library is missing."""
    entry = ENTRIES[name]
    with warnings.catch_warnings(action="ignore"):
        pytest.importorskip(entry.needs)
        if name == "optuna cmaes":  # its sampler wants another package
            pytest.importorskip("cmaes")
        budget = BUDGETS[tier].alone() if entry.alone else BUDGETS[tier]
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


@pytest.mark.parametrize(
    "name", ["ours", "ours mirrored", REFERENCE, "cmaes", "pycma best", "pycma lq alone"]
)
def test_a_search_finds_most_of_what_an_easy_problem_has(name: str) -> None:
    assert raced(name, OwnProblem("sphere", 1), "target").regrets[1.0] < 0.5


def test_the_surrogate_asks_what_the_library_s_own_loop_evaluates() -> None:
    with warnings.catch_warnings(action="ignore"):
        import cma
    problem = OwnProblem("rotated", 1)
    start = Start(problem.default, BUDGETS["target"], 5)
    theirs: list[Point] = []

    def objective(x: np.ndarray) -> float:
        theirs.append(tuple(float(u) for u in x))
        return problem.regret(theirs[-1])

    options = {
        "bounds": [0.0, 1.0],
        "seed": np.nan,
        "randn": np.random.RandomState(5).randn,
        "verbose": -9,
        "verb_log": 0,
        "verb_disp": 0,
        "maxfevals": 60,
    }
    with warnings.catch_warnings(action="ignore"):
        cma.fmin_lq_surr2(objective, list(problem.default), 0.2, options)
    search, ours = Surrogate(start, in_blocks=False), list[Point]()
    while len(ours) < 60:
        (trial,) = search.ask()
        ours.append(trial.point)
        search.tell([trial], [problem.regret(trial.point)])
    assert np.array(ours) == pytest.approx(np.array(theirs[:60]), abs=1e-9)


def test_ours_asks_no_more_when_nothing_of_a_generation_is_healthy() -> None:
    search = ENTRIES["ours"].make(Start((0.5,) * 10, BUDGETS["min"], 5))
    trials = search.ask()
    search.tell(trials, [None] * len(trials))
    assert search.ask() == ()
    assert search.recommend() == (0.5,) * 10
