"""Campaigns: conditions on the same seeds, their names, their table and the effects of factors."""

import json
import shutil
from itertools import product as combinations
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.acceptance.books import Books, cut
from tests.acceptance.product import Product, WarmStart

COMMON = """
objective = "sphere"
runs_dir = "runs"
[training]
dimension = 2
noise = 0.02
[backend]
executor = "inline"
workers = 1
"""
GRID = f"""{COMMON}
[campaign]
name = "grid"
seeds = [1, 2, 3]
[factors]
effort = [2, 4]
[factors.model]
small = {{ dimension = 3 }}
large = {{ dimension = 4 }}
[slurm]
time = "1h"
"""
CELLS = [f"effort{effort}_model{model}" for effort in (2, 4) for model in ("small", "large")]
CELLS += ["default_base"]

SEARCHES = f"""{COMMON}
[search]
tier = "min"
population = 4
generations = 2
[evaluation]
assume_eval_seconds = 1.0
[campaign]
name = "steps"
cell = "search"
controls = false
seeds = [1, 2]
[factors.step]
small = {{ "search.sigma0" = 0.05 }}
large = {{ "search.sigma0" = 0.3 }}
"""

STUDENT_T = {2: 12.706204736, 3: 4.302652730}
"""Of an interval of 95 % over so many seeds."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Path:
    """The folder of a user whose factorial nobody disturbed."""
    user = Product(tmp_path_factory.mktemp("campaign") / "user", warm_start)
    user.write("grid.toml", GRID)
    user("run", "grid.toml")
    return user.folder


@pytest.fixture
def grid(product: Product, undisturbed: Path) -> Path:
    """A copy of its campaign."""
    shutil.copytree(undisturbed, product.folder, dirs_exist_ok=True)
    return product.run_directory("grid")


def scores_of(campaign: Path) -> dict[str, dict[int, float]]:
    """The raw score of every condition on every seed."""
    books = Books.of(campaign)
    found: dict[str, dict[int, float]] = {name: {} for name in books.conditions}
    for attempt in books.searched:
        assert attempt.score is not None
        found[books.conditions[attempt.key[2]]][attempt.key[3]] = attempt.score
    return found


def report_of(campaign: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((campaign / "effects.json").read_bytes())["campaign"]
    return report


def assert_difference(found: dict[str, Any], by_seed: list[float], reference: float) -> None:
    mean, half = fmean(by_seed), STUDENT_T[len(by_seed)] * stdev(by_seed) / sqrt(len(by_seed))
    said = [found[name] for name in ("seeds", "mean", "lower", "upper", "percent")]
    wanted = [len(by_seed), mean, mean - half, mean + half, 100 * mean / reference]
    assert said == pytest.approx(wanted, rel=1e-6)


def test_a_preview_names_every_run_by_its_levels_and_seed_and_writes_nothing(
    product: Product,
) -> None:
    product.write("grid.toml", GRID)
    explained = product.json("explain", "grid.toml")["campaign"]
    exported = product.json("export", "slurm", "grid.toml")
    assert [condition["name"] for condition in explained["conditions"]] == CELLS
    assert {run["name"] for run in exported["runs"]} == {
        f"{cell}_s{seed}" for cell, seed in combinations(CELLS, (1, 2, 3))
    }
    assert [path.name for path in product.folder.rglob("*")] == ["grid.toml"]


def test_the_table_is_that_of_the_raw_scores_paired_with_the_control_by_seed(grid: Path) -> None:
    scores = scores_of(grid)
    control = scores["default_base"]
    rows = {row["name"]: row for row in report_of(grid)["rows"]}
    assert set(rows) == set(scores) == set(CELLS)
    for name, own in scores.items():
        assert rows[name]["scores"] == [own[seed] for seed in (1, 2, 3)]
        wanted = (fmean(own.values()), stdev(own.values()))
        assert (rows[name]["mean"], rows[name]["sd"]) == pytest.approx(wanted)
        if name != "default_base":
            (against,) = rows[name]["comparisons"]
            by_seed = [own[seed] - control[seed] for seed in own]
            assert_difference(against["difference"], by_seed, fmean(control.values()))


def test_effects_and_their_interaction_follow_from_the_raw_scores(grid: Path) -> None:
    scores, effects = scores_of(grid), report_of(grid)["effects"]

    def effort(model: str, seed: int) -> float:
        return scores[f"effort4_model{model}"][seed] - scores[f"effort2_model{model}"][seed]

    def model(effort: int, seed: int) -> float:
        cells = (scores[f"effort{effort}_model{name}"][seed] for name in ("large", "small"))
        return next(cells) - next(cells)

    by_seed = {
        ("effort",): [fmean((effort("small", s), effort("large", s))) for s in (1, 2, 3)],
        ("model",): [fmean((model(2, s), model(4, s))) for s in (1, 2, 3)],
        ("effort", "model"): [effort("large", s) - effort("small", s) for s in (1, 2, 3)],
    }
    assert {tuple(effect["factors"]) for effect in effects} == set(by_seed)
    for effect in effects:
        reference = fmean(scores["default_base"].values())
        assert_difference(effect["difference"], by_seed[tuple(effect["factors"])], reference)


@pytest.mark.parametrize("kept", [3, 20])
def test_a_campaign_that_was_killed_ends_like_one_that_was_not(
    product: Product, grid: Path, kept: int
) -> None:
    undisturbed, effects = Books.of(grid).essence, report_of(grid)["effects"]
    cut(grid, kept, half_of_the_next=True)
    product("run", "grid.toml")
    assert (Books.of(grid).essence, report_of(grid)["effects"]) == (undisturbed, effects)
    assert not Books.of(grid).open_attempts
    product.verify(grid)


def test_a_condition_that_fails_is_a_finding_and_has_no_score(product: Product) -> None:
    broken = '[[campaign.conditions]]\nname = "broken"\nfailure_rate = 1.0\n'
    product.write("c.toml", f'{COMMON}[campaign]\nname = "c"\nseeds = [1, 2]\n{broken}')
    product("run", "c.toml")
    rows = {row["name"]: row for row in report_of(product.run_directory("c"))["rows"]}
    assert (rows["broken"]["scores"], rows["broken"]["healthy"]) == ([None, None], 0)
    assert rows["default_base"]["healthy"] == 2
    product.verify(product.run_directory("c"))


def test_a_campaign_of_searches_is_a_run_for_each_cell_and_seed_and_resumes(
    product: Product,
) -> None:
    product.write("steps.toml", SEARCHES)
    product("run", "steps.toml")
    runs = {
        (cell, seed): product.folder / f"runs/phase1/steps.{cell}_s{seed}"
        for cell, seed in combinations(("stepsmall", "steplarge"), (1, 2))
    }
    assert set(product.folder.glob("runs/phase1/*")) == set(runs.values())
    undisturbed = {name: Books.of(run).essence for name, run in runs.items()}
    cut(runs["stepsmall", 2], 9)
    shutil.rmtree(runs["steplarge", 1])
    product("run", "steps.toml")
    assert {name: Books.of(run).essence for name, run in runs.items()} == undisturbed

    def came_to(cell: str, seed: int) -> float:
        """The mean score of the last generation."""
        last = [a.score for a in Books.of(runs[cell, seed]).searched if a.key[1] == 1]
        return fmean(score for score in last if score is not None)

    found = {name: came_to(*name) for name in runs}
    (effect,) = report_of(product.folder / "runs/campaign/steps")["effects"]
    by_seed = [found["steplarge", seed] - found["stepsmall", seed] for seed in (1, 2)]
    assert_difference(effect["difference"], by_seed, fmean(found.values()))
    product.verify(runs["stepsmall", 2])
    product.verify(runs["steplarge", 1])


CONDITION = '[[campaign.conditions]]\nname = "{}"\ntraining.noise = {}\n'


@pytest.mark.parametrize(
    ("described", "word"),
    [
        (CONDITION.format("loud", 0.03) + CONDITION.format("loud", 0.04), "loud"),
        (CONDITION.format("loud", 0.03) + CONDITION.format("Loud", 0.04), "Loud"),
        (CONDITION.format("default_base", 0.03), "default_base"),
        (CONDITION.format("../loud", 0.03), "../loud"),
        (CONDITION.format("one", 0.03) + CONDITION.format("two", 0.03), "two"),
        ("[factors]\nnoise = [0.1, 0.1]\n", "noise"),
        ("[factors]\nnoise = [0.1]\n[factors.other]\na = { noise = 0.3 }\n", "noise"),
    ],
)
def test_what_would_collide_is_refused_before_anything_is_written(
    product: Product, described: str, word: str
) -> None:
    product.write("c.toml", f'{COMMON}[campaign]\nname = "c"\nseeds = [1]\n{described}')
    assert word in product("run", "c.toml", code=2).err
    assert not (product.folder / "runs").exists()
