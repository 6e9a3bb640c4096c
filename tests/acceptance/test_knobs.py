"""`space check` finds the knobs that move the score, before anything is searched."""

from statistics import fmean, stdev
from typing import Any

import pytest
from scipy import stats

from tests.acceptance.books import SEARCH, Books
from tests.acceptance.product import Product

LAW = """
from random import Random

def law(knobs, seed, budget):
    steep, bent, faint = knobs["steep"], knobs["bent"], knobs["faint"]
    noise = Random(repr((seed, steep, bent, faint))).gauss(0.0, 0.01)
    if knobs["fatal"] > 0.5:
        raise RuntimeError("crash")
    return 1.0 + 0.2 * steep + 0.3 * bent**2 + 0.0001 * faint + noise
"""
NAMES = ("steep", "bent", "faint", "idle", "fatal")
KNOBS = "".join(f"knobs.{name} = {{ min = -1.0, max = 1.0, baseline = 0.0 }}\n" for name in NAMES)
SEEDS = 6


@pytest.fixture
def check(product: Product) -> dict[str, Any]:
    product.write("knobs.py", LAW)
    product.write("knobs.toml", f'objective = "python:knobs:law"\n[training]\n{KNOBS}')
    words = ("--config", "knobs.toml", "--executor", "inline", "--seeds", SEEDS)
    product("space", "check", *words)
    before = Books.of(product.run_directory())
    found: dict[str, Any] = product.json("space", "check", *words)["check"]
    product.verify()
    books = Books.of(product.run_directory())
    assert books.results == before.results, "the same command pays for nothing again"
    return found


def test_a_check_finds_which_knobs_are_alive_by_paired_seeds(
    product: Product, check: dict[str, Any]
) -> None:
    found = {one["knob"]: one for one in check["knobs"]}
    verdicts = {name: one["verdict"] for name, one in found.items()}
    assert [verdicts[name] for name in ("steep", "bent", "idle")] == ["alive", "alive", "dead"]
    assert verdicts["faint"] == "unproven", "its effect is a hundredth of the noise"
    assert verdicts["fatal"] == "unstable", "it fails at one end"
    assert (found["steep"]["better"], found["bent"]["better"]) == ("low", "neither")

    books = Books.of(product.run_directory())
    points = books.generations[0]["points"]
    own = [
        {key[3]: one.score for key, one in books.results.items() if key[:3] == (SEARCH, 0, place)}
        for place in range(len(points))
    ]
    baseline = {seed: score or 0.0 for seed, score in own[0].items()}
    assert (check["seeds"], len(baseline)) == (SEEDS, SEEDS)
    assert check["noise"] == pytest.approx(stdev(baseline.values()), rel=1e-9)
    for point, scores in zip(points[1:], own[1:], strict=True):
        (moved,) = (place for place, unit in enumerate(point) if unit != points[0][place])
        end = found[NAMES[moved]]["ends"][0 if point[moved] == 0.0 else 1]
        paired = [score - baseline[seed] for seed, score in scores.items() if score is not None]
        if not paired:
            assert end["difference"] is None
            continue
        test = stats.ttest_1samp(paired, 0.0)
        assert end["difference"] == pytest.approx(fmean(paired), rel=1e-9)
        assert end["in_noise"] == pytest.approx(fmean(paired) / check["noise"], rel=1e-9)
        if not end["same"]:
            assert end["t"] == pytest.approx(test.statistic, rel=1e-6)
            assert end["chance"] == pytest.approx(test.pvalue, abs=1e-6)
        assert end["same"] == (NAMES[moved] in ("idle",) or not any(paired))


def test_a_plan_knows_what_a_check_found(product: Product, check: dict[str, Any]) -> None:
    assert check["knobs"]
    plan = product.json("plan", "phase1", "--config", "knobs.toml", "--executor", "inline")
    (answer,) = (one for one in plan["tiers"][0]["checklist"] if "alive" in one["question"])
    assert answer["verdict"] == "fail"
    assert "idle" in answer["why"]
