"""`check knobs` finds the knobs that move the score, before anything is searched."""

from statistics import fmean, stdev

import pytest
from scipy import stats

from tests.product.books import SEARCH
from tests.product.product import Product

LAW = """
from random import Random

def law(knobs, seed):
    steep, bent, faint = knobs["steep"], knobs["bent"], knobs["faint"]
    noise = Random(repr((seed, steep, bent, faint))).gauss(0.0, 0.01)
    if knobs["fatal"] > 0.5:
        raise RuntimeError("crash")
    return 1.0 + 0.2 * steep + 0.3 * bent**2 + 0.0001 * faint + noise
"""
TRUTH = {
    "steep": "alive",
    "bent": "alive",
    "faint": "unproven",
    "idle": "dead",
    "fatal": "unstable",
}
RANGES = "".join(f"knobs.{name} = {{ min = -1.0, max = 1.0, baseline = 0.0 }}\n" for name in TRUTH)


def test_a_check_finds_which_knobs_are_alive_by_paired_seeds(product: Product) -> None:
    """Another one pays for nothing again, and a plan knows what it found."""
    product.write("knobs.py", LAW)
    product.write("knobs.toml", f'objective = "python:knobs:law"\n[training]\n{RANGES}')
    words = "knobs.toml --executor inline"
    product(f"check knobs {words} --seeds 6")
    books = product.books()
    check = product.json(f"check knobs {words} --seeds 6")["check"]
    product.verify()
    assert product.books().results == books.results
    found = {one["knob"]: one for one in check["knobs"]}
    assert {name: one["verdict"] for name, one in found.items()} == TRUTH
    assert (found["steep"]["better"], found["bent"]["better"]) == ("low", "neither")

    middle, *points = books.generations[0]["points"]
    base, *own = (
        {key[3]: one.score for key, one in books.results.items() if key[:3] == (SEARCH, 0, place)}
        for place in range(len(points) + 1)
    )
    noise = stdev(score or 0.0 for score in base.values())
    assert (check["seeds"], len(base)) == (6, 6)
    assert check["noise"] == pytest.approx(noise, rel=1e-9)
    for point, scores in zip(points, own, strict=True):
        (moved,) = (place for place, unit in enumerate(point) if unit != middle[place])
        end = found[list(TRUTH)[moved]]["ends"][0 if point[moved] == 0.0 else 1]
        paired = [one - (base[seed] or 0.0) for seed, one in scores.items() if one is not None]
        if any(paired):
            test = stats.ttest_1samp(paired, 0.0)
            shown = [end[name] for name in ("difference", "t", "chance")]
            numbers = [fmean(paired), test.statistic, test.pvalue]
            assert shown == pytest.approx(numbers, rel=1e-6, abs=1e-6)
        assert end["same"] == (paired == [0.0] * 6)

    plan = product.json(f"plan {words}")
    (answer,) = (one for one in plan["tiers"][0]["checklist"] if "alive" in one["question"])
    assert answer["verdict"] == "fail"
    assert "idle" in answer["why"]
