"""A verdict says no more than was shown, and no less."""

import json
import re
from math import sqrt
from statistics import fmean, stdev

import pytest

from tests.acceptance.books import Books
from tests.acceptance.looking import page_of, served
from tests.acceptance.product import Product

T_99_OF_ONE = 31.8205
"""Student's t that one of a hundred exceeds, for two pairs."""


GAINING = """
def evaluate(knobs, seed, budget):
    differs = SPREAD * (seed % 1000) / 1000 if budget > 4 else 0.0
    return 1 - knobs["x"] * (0.2 + differs) + (knobs["y"] - 0.5) ** 2 + (seed % 89) / 1e5
"""


@pytest.mark.parametrize(("spread", "persists"), [(0.0, True), (0.3, False)])
def test_a_go_persists_only_if_the_longer_runs_interval_leaves_0_out(
    product: Product, spread: float, persists: bool
) -> None:
    """On average the whole gain is kept in both."""
    product.write("gaining.py", GAINING.replace("SPREAD", str(spread)))
    knobs = {name: {"min": 0.0, "max": 1.0, "baseline": 0.5} for name in "xy"}
    product(
        "phase1", "--tier", "target", "--run-id", "run", "--generations", "6",
        "--objective", "python:gaining:evaluate", "--set", f"knobs={json.dumps(knobs)}",
        "--set", "budget=4", "--executor", "inline", "--workers", "2",
    )  # fmt: skip
    books = Books.of(product.run_directory("run"))
    base, best = (books.scores("rung 0", arm).values() for arm in books.comparisons["rung 0"])
    pairs = [(b, w) for b, w in zip(base, best, strict=True) if b is not None and w is not None]
    gains = [(b - w) / fmean(b for b, _ in pairs) for b, w in pairs]
    lower = fmean(gains) - T_99_OF_ONE * stdev(gains) / sqrt(2)
    assert books.verdict is not None
    assert books.verdict.gain is not None
    assert fmean(gains) > books.verdict.gain / 2
    assert (lower > 0) is persists
    assert books.verdict.grade == ("go_persists" if persists else "go")
    said = "that persists" if persists else "persistence not shown"
    assert said in product.json("report", "run")["answer"]["title"]
    assert said in product("best", "run").out.splitlines()[0]
    product.verify()


# What speaks against a recommendation


def test_best_begins_with_the_control_that_beats_its_recommendation(product: Product) -> None:
    run = product.stored("beaten_by_a_control")
    headline, first, *_ = product("best", run.name).out.splitlines()
    assert headline.startswith("Confirmed")
    assert first.startswith("But")
    assert "synapses off" in first
    document = product.json("best", run.name)
    assert first.endswith(document["cautions"][0])
    assert " ".join(document["cautions"]).lower() == (
        product.json("report", run.name)["answer"]["but"].lower()
    )
    product.verify(run.name)


def test_a_winner_that_a_control_beats_is_called_worse_and_not_searched_on(
    product: Product,
) -> None:
    run = product.stored("beaten_by_a_control")
    found = product.json("report", run.name)
    (over, longer) = (one["winner_gain"] for one in found["findings"]["controls"])
    assert over["upper"] < 0
    assert longer["upper"] < 0
    text = product("report", run.name).out
    assert "worse than synapses off" in text
    assert "not shown to be better" not in text
    assert not {"phase1", "phase2", "--train"} & set(found["answer"]["commands"][0].split())
    assert "synapses off" in found["answer"]["next"]


def test_a_page_shows_a_verdict_in_one_colour(product: Product) -> None:
    run = product.stored("beaten_by_a_control")
    runs, page = served(product, run.name)
    moods = re.findall(r'class="(?:live |answer )mood-(\w+)', page)
    assert len(moods) == 2
    assert {*moods, *re.findall(r'<tr class="mood-(\w+)', runs)} == {"caution"}


def test_the_rows_of_the_gains_plot_can_be_read(product: Product) -> None:
    run = product.stored("beaten_by_a_control")
    page = page_of(product, run.name)
    plot = page.partition('id="plot-confirmations"')[2].partition("</figure>")[0]
    assert "synapses off at equal seconds" in plot
    assert "\N{HORIZONTAL ELLIPSIS}" not in plot
