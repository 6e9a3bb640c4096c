"""Rules pause and stop a search with their numbers; an override, with its reason, is on record."""

from statistics import fmean, median

import pytest

from tests.acceptance.books import FAILED
from tests.acceptance.product import Product
from tests.acceptance.searches import books_of, phase1, scores

KNOWN = ("--reason", "known", "--override")


def short(generations: int) -> tuple[str, ...]:
    return ("--set", "verdict.confirm_seeds=0", "--set", f"search.generations={generations}")


@pytest.mark.parametrize(("rule", "end"), [("crash_rate", "crash"), ("sustained_nan", "diverge")])
def test_a_rule_pauses_until_it_is_overridden(product: Product, rule: str, end: str) -> None:
    fails = ("--set", f'fixed={{"{end}": "gen_0001/cand_000[25]"}}')
    search = ("run", "hill", *fails, *short(3))
    phase1(product, *search, code=3)
    paused = books_of(product, "run")
    (fired,) = paused.fired
    assert fired == (rule, 1, "pause", 2 / 8, 0.1)
    assert len(paused.searched) in (14, 15), "once it fires nothing more is started"
    phase1(product, *search, code=3)
    assert books_of(product, "run").results == paused.results, "what is paused pays for nothing"
    phase1(product, *search, *KNOWN, "patience", code=2)  # which has not fired: not recorded
    phase1(product, *search, *KNOWN, rule)
    books = books_of(product, "run")
    assert (books.overridden, books.fired) == ([(rule, 1, "known")], [fired])
    assert [one.status in FAILED for one in books.searched].count(True) == 2
    assert len(books.searched) == 24


def test_an_override_is_of_one_rule(product: Product) -> None:
    fails = 'fixed={"crash": "gen_0001/cand_000[25]", "diverge": "gen_0001/cand_000[67]"}'
    search = ("run", "hill", "--set", fails, *short(2))
    for code, rules in ((3, ()), (3, ("crash_rate",)), (0, ("crash_rate", "sustained_nan"))):
        overrides = [word for rule in rules for word in (*KNOWN, rule)]
        phase1(product, *search, *overrides, code=code)


@pytest.mark.parametrize("healthy", [3, 0])
def test_a_generation_of_failures_is_let_through_by_two_overrides(
    product: Product, healthy: int
) -> None:
    """Fewer healthy candidates than the search recombines."""
    fails = ("--set", f'fixed={{"crash": "gen_0001/cand_000[{healthy}-7]"}}')
    search = ("run", "hill", *fails, *short(3))
    phase1(product, *search, code=3)
    phase1(product, *search, *KNOWN, "crash_rate", code=3)
    assert books_of(product, "run").fired[-1] == ("too_few_healthy", 1, "pause", healthy, 4)
    phase1(product, *search, *KNOWN, "too_few_healthy")
    books = books_of(product, "run")
    assert [one.status in FAILED for one in books.searched].count(True) == 8 - healthy
    assert len(books.searched) == 24
    product.verify("run")


@pytest.mark.parametrize(("fixed", "drifts"), [('{"later": 0.1}', True), ('{"idle": 0.15}', False)])
def test_time_drift_is_more_work_and_not_a_busy_machine(
    product: Product, fixed: str, drifts: bool
) -> None:
    words = ("--set", f"fixed={fixed}", "--set", "thresholds.time_drift_floor_seconds=0.005")
    phase1(product, "run", "working", *words, *short(2), code=3 if drifts else 0)
    fired = [one[:3] for one in books_of(product, "run").fired]
    assert fired == [("runaway_time", 1, "pause")] * drifts


def test_patience_ends_a_search_that_does_not_get_better(product: Product) -> None:
    """By the median of the generations' means, as a share of the baseline's score."""
    words = "--set thresholds.patience_generations=3 --set verdict.rung=0"
    phase1(product, "run", "flat", *words.split(), code=4)
    books = books_of(product, "run")
    fired = next(one for one in books.fired if one.rule == "patience")
    assert (fired.decision, fired.generation, len(books.generations)) == ("stop", 3, 4)
    first, *last = (fmean(scores(books, number)) for number in range(4))
    assert fired.observed == pytest.approx((first - median(last)) / fmean(books.baseline), rel=1e-9)
    assert books.verdict is not None, "what was found is compared all the same"
