"""Campaigns: conditions on the same seeds, their names, their table and the effects of factors."""

from math import sqrt
from statistics import fmean, stdev
from typing import Any

import pytest
from scipy import stats

from tests.product.product import Product

COMMON = """
objective = "sphere"
training = { dimension = 2, noise = 0.02 }
backend = { executor = "inline", workers = 1 }
slurm.time = "1h"
"""
GRID = f"""{COMMON}
campaign.seeds = [1, 2, 3]
campaign.conditions = [{{ name = "broken", training.failure_rate = 1.0 }}]
[factors]
effort = [2, 4]
model = {{ small = {{ dimension = 3 }}, large = {{ dimension = 4 }} }}
"""
CELLS = [f"effort{effort}_model{model}" for effort in (2, 4) for model in ("small", "large")]
CELLS.append("default_base")
WEIGHTS = {
    "effort": (-0.5, -0.5, 0.5, 0.5, 0),
    "model": (-0.5, 0.5, -0.5, 0.5, 0),
    **{cell: [*(float(cell == one) for one in CELLS[:4]), -1] for cell in CELLS[:4]},
}
"""Of the cells in each effect, and in what a cell is compared with."""


def assert_difference(found: dict[str, Any], by_seed: list[float], reference: float) -> None:
    gains = [-one / reference for one in by_seed]  # lower is better
    mean, seeds = fmean(gains), len(gains)
    half = stats.t.ppf(0.975, seeds - 1) * stdev(gains) / sqrt(seeds)
    said = [found[name] for name in ("pairs", "mean", "lower", "upper")]
    assert said == pytest.approx([seeds, mean, mean - half, mean + half], rel=1e-6)


def test_a_preview_names_every_run_and_table_and_effects_follow_from_the_raw_scores(
    product: Product,
) -> None:
    product.write("grid.toml", GRID)
    listed = product.json("plan grid.toml")["runs"]
    runs = {f"{name}_s{seed}" for name in ("broken", *CELLS) for seed in (1, 2, 3)}
    assert set(listed) == runs
    assert [path.name for path in product.folder.rglob("*")] == ["grid.toml"]
    product("run grid.toml")
    product.verify()

    books = product.books()
    report = product.json("report")["campaign"]
    names = [condition["name"] for condition in books.plan["campaign"]["conditions"]]
    scores: dict[str, list[float]] = {name: [] for name in names}
    for one in books.searched:  # seed after seed
        scores[names[one.key[2]]].append(one.score or 0.0)
    rows = {row["name"]: row for row in report["rows"]}
    assert rows.keys() == scores.keys() == {"broken", *CELLS}
    for row in (rows[cell] for cell in CELLS):
        own = scores[row["name"]]
        assert row["scores"] == own
        assert (row["mean"], row["sd"]) == pytest.approx((fmean(own), stdev(own)))
    assert rows["broken"]["scores"] == [None] * 3

    gains = [one for one in report["gains"] if one["name"] != "broken"]
    found = {one["name"].partition(":")[0]: one["gain"] for one in gains}
    assert found.keys() == WEIGHTS.keys()
    for name, weights in WEIGHTS.items():
        cells = list(zip(CELLS, weights, strict=True))
        by_seed = [sum(part * scores[cell][seed] for cell, part in cells) for seed in range(3)]
        assert_difference(found[name], by_seed, fmean(scores["default_base"]))
