"""Rules pause and stop a search with their numbers; an override, with its reason, is on record."""

import shutil
from statistics import fmean, median

import pytest

from tests.acceptance.books import FAILED, Books, cut
from tests.acceptance.product import Product
from tests.acceptance.searches import books_of, calibration_of, phase1, scores

SHORT = ("--confirm-seeds", 0, "--generations")


@pytest.mark.parametrize(
    ("rule", "law"), [("crash_rate", "two_crash"), ("sustained_nan", "two_diverge")]
)
def test_a_rule_pauses_until_it_is_overridden(product: Product, rule: str, law: str) -> None:
    phase1(product, "run", law, *SHORT, 3, code=3)
    paused = books_of(product, "run")
    (fired,) = paused.fired
    assert fired == (rule, 1, "pause", 2 / 8, 0.1)
    phase1(product, "run", law, *SHORT, 3, code=3)
    assert books_of(product, "run").results == paused.results, "what is paused pays for nothing"
    phase1(product, "run", law, *SHORT, 3, "--override", rule, "--reason", "known")
    books = books_of(product, "run")
    assert (books.overridden, books.fired) == ([(rule, 1, "known")], [fired])
    assert [one.status in FAILED for one in books.searched].count(True) == 2
    assert len(books.searched) == 24


def test_no_override_lets_through_what_teaches_the_search_nothing(product: Product) -> None:
    """Fewer healthy candidates than it recombines."""
    phase1(product, "run", "most_crash", *SHORT, 2, code=3)
    words = ("--override", "crash_rate", "--reason", "known")
    phase1(product, "run", "most_crash", *SHORT, 2, *words, code=3)
    fired = books_of(product, "run").fired[-1]
    assert fired == ("too_few_healthy", 1, "pause", 3, 4)
    words = ("--override", "too_few_healthy", "--reason", "known")
    phase1(product, "run", "most_crash", *SHORT, 2, *words, code=2)


@pytest.mark.parametrize(("fixed", "drifts"), [('{"later": 5}', True), ('{"wait": 0.15}', False)])
def test_time_drift_is_more_work_and_not_a_busy_machine(
    product: Product, fixed: str, drifts: bool
) -> None:
    words = (
        "--set",
        f"training.fixed={fixed}",
        "--set",
        "thresholds.time_drift_floor_seconds=0.005",
    )
    phase1(product, "run", "working", *SHORT, 2, *words, code=3 if drifts else 0)
    fired = [one[:3] for one in books_of(product, "run").fired]
    assert fired == ([("runaway_time", 1, "pause")] if drifts else [])


def test_what_the_infrastructure_loses_is_no_crash(product: Product) -> None:
    """An evaluation that died with the orchestrator is made again; one crash would pause here."""
    words = ("--set", "thresholds.crash_count_pause=1")
    phase1(product, "run", "sphere", *SHORT, 2, *words)
    run = product.run_directory("run")
    undisturbed = Books.of(run)
    begun = next(one.key for one in undisturbed.searched if one.key[1] == 1)
    cut(run, undisturbed.reserved_at(begun))
    shutil.rmtree(run / "eval" / "gen_0001")
    phase1(product, "run", "sphere", *SHORT, 2, *words)
    books = Books.of(run)
    assert (books.statuses, books.fired) == ({"lost": 1, "ok": 16}, [])
    assert books.essence == undisturbed.essence


def test_patience_ends_a_search_that_does_not_get_better(product: Product) -> None:
    """By the median of the generations' means, as a share of the baseline's score."""
    words = ("--patience", 3, "--min-improve", 0.01, "--rung", 0)
    phase1(product, "run", "dead", *words, code=4)
    books, known = books_of(product, "run"), scores(calibration_of(product, "run"))
    fired = next(one for one in books.fired if one.rule == "patience")
    assert (fired.decision, fired.generation, fired.limit) == ("stop", 3, 0.01)
    first, *last = (fmean(scores(books, number)) for number in range(4))
    assert fired.observed == pytest.approx((first - median(last)) / fmean(known), rel=1e-9)
    assert len(books.generations) == 4
    assert books.verdict is not None, "what was found is compared all the same"
