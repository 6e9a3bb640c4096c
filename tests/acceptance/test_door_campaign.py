"""Campaigns: conditions on the same seeds, their names, their table and the effects of factors."""

import json
import shutil
from itertools import product as combinations
from math import atan, pi, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.acceptance.books import Books, cut, records
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
"""
GRID_CELLS = [f"effort{effort}_model{model}" for effort in (2, 4) for model in ("small", "large")]

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
SEARCH_CELLS = ["stepsmall", "steplarge"]


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
    found: dict[str, dict[int, float]] = {}
    for attempt in books.searched:
        if attempt.score is not None:
            found.setdefault(books.conditions[attempt.key[2]], {})[attempt.key[3]] = attempt.score
    return found


def report_of(campaign: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((campaign / "effects.json").read_bytes())["campaign"]
    return report


T_95 = {2: 12.706204736, 3: 4.302652730}
"""Student's t of an interval of 95 % over so many seeds."""


def chance(t: float, seeds: int) -> float:
    """That luck alone gives so large a t or a larger one: Student's, in closed form."""
    return 1 - (2 / pi * atan(abs(t)) if seeds == 2 else abs(t) / sqrt(t * t + 2))


def expected(differences: list[float], reference: float) -> dict[str, Any]:
    """What a campaign says of differences, one for each seed."""
    count, mean, sd = len(differences), fmean(differences), stdev(differences)
    half = T_95[count] * sd / sqrt(count)
    return {
        "seeds": count,
        "mean": mean,
        "lower": mean - half,
        "upper": mean + half,
        "sd": sd,
        "chance": chance(mean / (sd / sqrt(count)), count),
        "percent": 100 * mean / reference,
    }


def assert_difference(found: dict[str, Any], differences: list[float], reference: float) -> None:
    wanted = expected(differences, reference)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-6)


def test_names_are_each_factor_with_its_level_joined_and_then_the_seed(product: Product) -> None:
    product.write("grid.toml", GRID)
    exported = product.json("export", "slurm", "grid.toml", "--set", "slurm.time=1h")
    cells = [*GRID_CELLS, "default_base"]
    assert {run["name"] for run in exported["runs"]} == {
        f"{cell}_s{seed}" for cell, seed in combinations(cells, (1, 2, 3))
    }


@pytest.mark.parametrize(
    "words", [("explain",), ("doctor", "--quick", "--config"), ("export", "slurm")], ids=" ".join
)
def test_a_preview_writes_nothing(product: Product, words: tuple[str, ...]) -> None:
    product.write("grid.toml", GRID + '[slurm]\ntime = "1h"\n')
    product(*words, "grid.toml", code=None)
    assert [path.name for path in product.folder.rglob("*")] == ["grid.toml"]


def test_the_table_and_the_differences_to_a_control_are_those_of_the_raw_scores(
    product: Product, grid: Path
) -> None:
    scores, report = scores_of(grid), report_of(grid)
    assert {name: list(own) for name, own in scores.items()} == {
        name: [1, 2, 3] for name in [*GRID_CELLS, "default_base"]
    }
    control = scores["default_base"]
    for row in report["rows"]:
        own = scores[row["name"]]
        assert row["scores"] == [own[seed] for seed in (1, 2, 3)]
        wanted = (fmean(own.values()), stdev(own.values()))
        assert (row["mean"], row["sd"]) == pytest.approx(wanted)
        assert row["is_control"] == (row["name"] == "default_base")
        if not row["is_control"]:
            (against,) = row["comparisons"]
            differences = [own[seed] - control[seed] for seed in own]
            assert_difference(against["difference"], differences, fmean(control.values()))
    product.verify(grid)


def test_effects_are_recomputed_from_the_raw_scores(grid: Path) -> None:
    scores, effects = scores_of(grid), report_of(grid)["effects"]
    reference = fmean(scores["default_base"].values())

    def score(effort: int, model: str, seed: int) -> float:
        return scores[f"effort{effort}_model{model}"][seed]

    by_seed = {
        ("effort",): [
            fmean(score(4, model, seed) - score(2, model, seed) for model in ("small", "large"))
            for seed in (1, 2, 3)
        ],
        ("model",): [
            fmean(score(n, "large", seed) - score(n, "small", seed) for n in (2, 4))
            for seed in (1, 2, 3)
        ],
        ("effort", "model"): [
            (score(4, "large", seed) - score(4, "small", seed))
            - (score(2, "large", seed) - score(2, "small", seed))
            for seed in (1, 2, 3)
        ],
    }
    assert {tuple(effect["factors"]) for effect in effects} == set(by_seed)
    for effect in effects:
        assert_difference(effect["difference"], by_seed[tuple(effect["factors"])], reference)


@pytest.mark.parametrize("kept", [3, 20])
def test_a_campaign_that_was_killed_ends_like_one_that_was_not(
    product: Product, grid: Path, kept: int
) -> None:
    undisturbed, effects = Books.of(grid).essence, report_of(grid)["effects"]
    cut(grid, kept, half_of_the_next=True)
    product("run", "grid.toml")
    assert Books.of(grid).essence == undisturbed
    assert report_of(grid)["effects"] == effects
    assert not Books.of(grid).open_attempts
    product.verify(grid)


def test_a_process_that_is_killed_loses_no_finished_evaluation(product: Product) -> None:
    text = GRID.replace("noise = 0.02", "noise = 0.02\nseconds = 0.1")
    product.write("grid.toml", text)
    campaign = product.folder / "runs/campaign/grid"
    product.kill_at(lambda: records(campaign) >= 8, "run", "grid.toml")
    before = Books.of(campaign).results
    assert before
    product("run", "grid.toml")
    after = Books.of(campaign)
    assert len(after.results) == 15
    assert {key: after.results[key] for key in before} == before
    product.verify(campaign)


def test_a_condition_that_fails_is_a_finding_and_has_no_score(product: Product) -> None:
    broken = '[[campaign.conditions]]\nname = "broken"\nfailure_rate = 1.0\n'
    text = f'{COMMON}[campaign]\nname = "grid"\nseeds = [1, 2, 3]\n{broken}'
    product.write("grid.toml", text)
    product("run", "grid.toml")
    rows = {row["name"]: row for row in report_of(product.run_directory("grid"))["rows"]}
    assert (rows["broken"]["scores"], rows["broken"]["healthy"]) == ([None] * 3, 0)
    assert rows["default_base"]["healthy"] == 3
    product.verify(product.run_directory("grid"))


def test_a_campaign_of_searches_is_a_run_for_each_cell_and_seed_and_resumes(
    product: Product,
) -> None:
    product.write("steps.toml", SEARCHES)
    product("run", "steps.toml")
    runs = {
        (cell, seed): product.folder / f"runs/phase1/steps.{cell}_s{seed}"
        for cell, seed in combinations(SEARCH_CELLS, (1, 2))
    }
    assert {path.parent for path in product.folder.glob("runs/phase1/*/ledger.jsonl")} == {
        *runs.values()
    }
    undisturbed = {name: Books.of(run).essence for name, run in runs.items()}
    cut(runs["stepsmall", 2], 9)
    shutil.rmtree(runs["steplarge", 1])
    product("run", "steps.toml")
    assert {name: Books.of(run).essence for name, run in runs.items()} == undisturbed

    def found(cell: str, seed: int) -> float:
        """How far a search came: the mean score of its last generation."""
        searched = Books.of(runs[cell, seed]).searched
        last = max(attempt.key[1] for attempt in searched)
        return fmean(a.score for a in searched if a.key[1] == last and a.score is not None)

    report = report_of(product.folder / "runs/campaign/steps")
    assert {row["name"]: row["scores"] for row in report["rows"]} == {
        cell: pytest.approx([found(cell, seed) for seed in (1, 2)]) for cell in SEARCH_CELLS
    }
    (effect,) = report["effects"]
    differences = [found("steplarge", seed) - found("stepsmall", seed) for seed in (1, 2)]
    reference = fmean(found(cell, seed) for cell, seed in runs)
    assert_difference(effect["difference"], differences, reference)
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
        (CONDITION.format("twice", 0.03).replace("training.noise", "noise = 0.1\ntraining.noise"),
         "noise"),
        ("[factors]\nnoise = [0.1, 0.1]\n", "noise"),
        ("[factors]\nnoise = [0.1, 0.2]\n[factors.other]\na = { noise = 0.3 }\n"
         "b = { noise = 0.4 }\n", "noise"),
    ],
)  # fmt: skip
def test_what_would_collide_is_refused_before_anything_is_written(
    product: Product, described: str, word: str
) -> None:
    product.write("c.toml", f'{COMMON}[campaign]\nname = "c"\nseeds = [1]\n{described}')
    assert word in product("run", "c.toml", code=2).err
    assert not (product.folder / "runs").exists()


def test_a_cap_that_does_not_pay_for_all_cells_begins_none(product: Product) -> None:
    product.write("grid.toml", GRID)
    product("run", "grid.toml", "--max-evals", 14, code=2)
    assert not (product.folder / "runs").exists()
