"""Rules pause and stop a search with their numbers; an override, with its reason, is on record."""

from statistics import fmean, median

import pytest

from tests.product.books import FAILED
from tests.product.product import Product
from tests.product.searches import phase1, scores

SHORT = "--set verdict.confirm_seeds=0 --set search.generations="
OVERRIDE = "--reason known --override"
PAUSES = [  # which of 8 candidates fail how in the second generation; the rules that pause in turn
    ({"crash": "25"}, 2, ["crash_rate"]),
    ({"diverge": "25"}, 2, ["sustained_nan"]),
    ({"crash": "25", "diverge": "67"}, 4, ["crash_rate", "sustained_nan"]),
    ({"crash": "0-7"}, 8, ["crash_rate"]),
]


@pytest.mark.parametrize(("fails", "failed", "rules"), PAUSES)
def test_a_rule_pauses_until_it_is_overridden(
    product: Product, fails: dict[str, str], failed: int, rules: list[str]
) -> None:
    fixed = {how: f"gen_0001/cand_000[{who}]" for how, who in fails.items()}

    def search(words: str = "", code: int = 3) -> None:
        phase1(product, "hill", f"{SHORT}3 {words}", code, **fixed)

    search()
    paused = product.books("run")
    assert len(paused.searched) < 16, "once it fires nothing more is started"
    (first,) = paused.fired
    assert first[1:3] + first[4:] == (1, "pause", 0.1)
    assert first.observed in {2 / 8, 3 / 8}  # one more was in flight
    search()
    again = product.books("run")
    assert again.results == paused.results, "what is paused pays for nothing"
    search(f"{OVERRIDE} patience", code=2)  # which has not fired
    assert product.books("run").lines == again.lines, "what is refused is not recorded"
    for rule in rules:
        search(f"{OVERRIDE} {rule}", code=0 if rule == rules[-1] else 3)
    books = product.books("run")
    assert [one.rule for one in books.fired] == rules
    assert books.overridden == [(rule, 1, "known") for rule in rules]
    assert [one.status in FAILED for one in books.searched].count(True) == failed
    assert len(books.searched) == 24


@pytest.mark.parametrize(("fixed", "drifts"), [({"later": 0.1}, True), ({"idle": 0.15}, False)])
def test_time_drift_is_more_work_and_not_a_busy_machine(
    product: Product, fixed: dict[str, float], drifts: bool
) -> None:
    words = f"{SHORT}2 --set thresholds.time_drift_floor_seconds=0.005"
    phase1(product, "working", words, 3 if drifts else 0, **fixed)
    fired = [one[:3] for one in product.books("run").fired]
    assert fired == [("runaway_time", 1, "pause")] * drifts


def test_patience_ends_a_search_that_does_not_get_better(product: Product) -> None:
    """By the median of the generations' means, as a share of the baseline's score."""
    words = "--set thresholds.patience_generations=3 --set verdict.long_run=0"
    phase1(product, "flat", words, code=4)
    books = product.books("run")
    fired = next(one for one in books.fired if one.rule == "patience")
    assert (fired.decision, fired.generation, len(books.generations)) == ("stop", 3, 4)
    first, *last = (fmean(scores(books, number)) for number in range(4))
    assert fired.observed == pytest.approx((first - median(last)) / fmean(books.baseline), rel=1e-9)
    assert books.verdict is not None, "what was found is compared all the same"
