"""What a search knew beforehand is on a problem of its own, and the truth is told from there on."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orchestrator.benchmark.budgets import BUDGETS
from orchestrator.benchmark.own import OwnProblem
from orchestrator.benchmark.suites import Key
from orchestrator.benchmark.warm import ARMS, GOOD, MOVED, RANDOM, Arm, Earlier, known, run

KEY = Key("own", "sphere", 1, "0.1")
SCRIPT = Path(__file__).parents[3] / "scripts/bench_warmstart"


def test_an_earlier_functions_optimum_lies_where_its_relation_says() -> None:
    key = Key("own", "sphere", 3, "0.1")  # so near the default that no optimum is reflected
    own = OwnProblem(key.function, key.seed, key.level).setting
    distance = float(np.linalg.norm(own.optimum - own.default))
    away = {}
    for relation in ("same", "moved", "unrelated"):
        setting = Earlier(key, relation).setting
        assert (setting.default == own.default).all()
        away[relation] = float(np.linalg.norm(setting.optimum - own.optimum)) / distance
    assert away["same"] == 0
    assert away["moved"] == pytest.approx(MOVED)
    assert away["unrelated"] > 2 * MOVED


def test_a_search_begins_where_the_earlier_one_ended() -> None:
    cold, warm = (run(arm, "min", KEY) for arm in (Arm(), Arm("same", "target")))
    assert cold.regrets[0.0] == 1.0
    assert warm.regrets[0.0] < 0.3
    assert run(Arm("same", "target"), "min", KEY).regrets == warm.regrets


def test_known_settings_are_as_good_as_they_are_said_to_be() -> None:
    problem = OwnProblem(KEY.function, KEY.seed, KEY.level)
    for name, budget in (("min", 4), ("target", RANDOM)):
        population = BUDGETS[name].population
        assert [len(list(known(k, population, KEY))) for k in ("good", "bad", "random")] == [
            *(1, 1),
            budget,
        ]
    (good,) = known("good", 8, KEY)
    assert problem.regret(good) == pytest.approx(GOOD)


def test_the_script_has_figures_for_every_way_to_begin() -> None:
    asked = ("--functions", "sphere", "--seeds", "1", "--levels", "1/3", "--tiers", "min")
    answer = subprocess.run(
        [sys.executable, str(SCRIPT), *asked], capture_output=True, text=True, check=True
    )
    for arm in ARMS:
        assert answer.stdout.count(f"| min, {arm.name}: in the end |") == 1
