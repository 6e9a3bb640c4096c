"""Rules pause and stop a search with their numbers; an override, with its reason, is on record."""

from statistics import fmean, median

import pytest

from tests.product.books import FAILED, cut
from tests.product.product import Done, Product
from tests.product.searches import phase1, scores

SHORT = "--set verdict.confirm_seeds=0 --set search.generations="
PAUSES = [  # in which generations which of 8 candidates fail how; the rules that pause in turn
    ({"crash": "[12]/cand_000[25]"}, 4, [("crash_rate", 1), ("crash_rate", 2)]),
    ({"diverge": "1/cand_000[25]"}, 2, [("sustained_nan", 1)]),
    (
        {"crash": "1/cand_000[25]", "diverge": "1/cand_000[67]"},
        4,
        [("crash_rate", 1), ("sustained_nan", 1)],
    ),
    ({"crash": "1"}, 8, [("crash_rate", 1)]),
]


@pytest.mark.parametrize(("fails", "failed", "pauses"), PAUSES)
def test_a_rule_pauses_until_it_is_overridden(
    product: Product, fails: dict[str, str], failed: int, pauses: list[tuple[str, int]]
) -> None:
    fixed = {how: f"gen_000{who}" for how, who in fails.items()}

    def search(words: str = "", code: int = 3) -> Done:
        return phase1(product, "hill", f"{SHORT}3 {words}", code, **fixed)

    search()
    paused = product.books("run")
    assert len(paused.searched) < 16, "once it fires nothing more is started"
    (first,) = paused.fired
    assert first[1:3] + first[4:] == (1, "pause", 0.1)
    assert first.observed in {2 / 8, 3 / 8}  # one more was in flight
    search()
    again = product.books("run")
    assert again.results == paused.results, "what is paused pays for nothing"
    search("--reason known --override patience", code=2)  # which has not fired
    assert product.books("run").lines == again.lines, "what is refused is not recorded"
    for rule, number in pauses:
        if number == 2:  # each generation needs a reason of its own
            assert "another --reason" in search(f"--reason known-1 --override {rule}", code=2).err
        words = f"--reason known-{number} --override {rule}"
        search(words, code=0 if (rule, number) == pauses[-1] else 3)
    books = product.books("run")
    assert [one[:2] for one in books.fired] == pauses
    assert books.overridden == [(rule, number, f"known-{number}") for rule, number in pauses]
    assert [one.status in FAILED for one in books.searched].count(True) == failed
    assert len(books.searched) == 24


def test_a_generation_that_a_result_taken_up_has_paused_is_not_told(product: Product) -> None:
    """The reservation of its last evaluation is lost, the result of it is not."""

    def search() -> None:
        phase1(product, "hill", f"{SHORT}2", 3, crash="gen_0000/cand_000[67]")

    search()
    kinds = [line["event"]["kind"] for line in product.books("run").lines]
    cut(product.run_directory("run"), len(kinds) - 1 - kinds[::-1].index("reserved"))
    search()
    books = product.books("run")
    assert (len(books.attempts), len(books.searched), books.events("generation_told")) == (8, 8, [])


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
