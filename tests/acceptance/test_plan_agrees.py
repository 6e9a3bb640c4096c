"""`plan`, `plan --fit` and the run itself give one answer to: does it fit?"""

from typing import Any

import pytest

from tests.product.product import Product

# They decide what must be free, not how fast the machine is.
COMMON = (
    "--objective sphere --executor inline --assume-eval-seconds 0.01 --set budget.safety_margin=0s"
    " --set evaluation.limit_seconds=100"
)
RESERVED = 110 / 3600
"""Hours that an attempt reserves: its limit, and about 10 s for its end."""
MIN = "--tier min --workers 2"
VERDICT = "--tier target --set search.generations=3 --workers 2"
ALONE = "--tier target --set search.generations=3 --workers 1 --set verdict.confirm_seeds=0"
PRICE = "--set budget.price_per_device_hour=1"
CASES = {
    "a smoke test in a window": (MIN, "--window {}h", None),
    "a verdict in a window": (VERDICT, "--window {}h", None),
    "no verdict, on one device, in open hours": (ALONE, "--max-hours {}", None),
    "a smoke test in device-hours": (MIN, "--max-device-hours {}", RESERVED),
    "a verdict in device-hours": (VERDICT, "--max-device-hours {}", 2 * RESERVED),
    "a verdict for money": (VERDICT, f"{PRICE} --max-cost {{}}", 2 * RESERVED),
}
"""What is run, the cap, and what it must hold; where that is time, `plan --fit` says it."""


def fit(product: Product, words: str) -> Any:
    """What is asked for, as `plan --fit` judges it."""
    return product.json(f"plan --fit {words}")["choices"][0]


@pytest.mark.parametrize("suffices", [True, False])
@pytest.mark.parametrize(("shape", "cap", "needed"), CASES.values(), ids=CASES)
def test_page_fit_and_run_agree(
    product: Product, shape: str, cap: str, needed: float | None, suffices: bool
) -> None:
    asked = f"{COMMON} {shape} {cap}"
    hours = needed or fit(product, asked.format(1))["needed_hours"]
    words = asked.format(hours * (1.4 if suffices else 0.8))
    if needed is None:
        assert fit(product, words)["fits"] is suffices
    about = "caps" if needed else "wall clock"
    (page,) = product.json(f"plan {words}")["tiers"]
    answers = {item["verdict"] for item in page["checklist"] if about in item["question"]}
    assert answers == {"pass" if suffices else "fail"}
    done = product(f"phase1 {words}", code=None)
    books = product.books()
    assert (books.is_concluded and books.shape[1] == len(books.generations)) is suffices
    if not suffices:
        assert done.code in {0, 4}, done  # 0: what it found was shown to be better
        assert "budget" in {fired.rule for fired in books.fired}
    assert not books.overshoots()
    product.verify()


def test_one_run_has_one_forecast(product: Product) -> None:
    """What must be free holds the longer run that may follow."""
    words = f"{COMMON} {VERDICT} --window 9h"
    (page,) = product.json(f"plan {words}")["tiers"]
    assert page["forecast"]["hours_p50"] == pytest.approx(fit(product, words)["hours"])

    # Winner and baseline on two seeds each, for four times as long, two at a time.
    words = f"--objective sphere --assume-eval-seconds 60 {VERDICT} --window 9h --set"
    with_it, without = (
        fit(product, f"{words} verdict.long_run={factor}")["needed_hours"] for factor in (4, 0)
    )
    assert with_it - without == pytest.approx(2 * 2 * 4 * 60 / 2 / 3600, rel=0.01)


def test_fit_offers_each_way_to_spend_a_window_once(product: Product) -> None:
    words = "--objective sphere --workers 2 --assume-eval-seconds 60"
    found = product.json(f"plan --tier max --fit --window 1h {words}")
    sizes = ("population", "generations", "seeds_per_candidate", "needed_hours")
    offered = [[choice[size] for size in sizes] for choice in found["choices"]]
    assert len(offered) > 2
    assert all(offered.count(one) == 1 for one in offered)
    assert not any(product.folder.iterdir())  # to plan writes nothing
