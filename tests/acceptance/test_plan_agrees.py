"""`plan`, `plan --fit` and the run itself give one answer to: does it fit?"""

from typing import Any, NamedTuple

import pytest

from tests.acceptance.books import Books
from tests.acceptance.product import Product

HOUR = 3600
LIMIT = 100
"""Seconds that an evaluation may take: the limits decide what must be free, not how fast the
machine is."""


class Case(NamedTuple):
    """What is run, and the cap that decides whether it fits."""

    shape: tuple[str, ...]
    cap: str = "--window"
    money: tuple[str, ...] = ()

    def words(self, hours: float) -> tuple[str, ...]:
        amount = f"{HOUR * hours:.0f}s" if self.cap == "--window" else f"{hours}"
        return (*self.base, *self.money, self.cap, amount)

    @property
    def base(self) -> tuple[str, ...]:
        return (
            *("--objective", "sphere", "--executor", "inline", "--assume-eval-seconds", "0.01"),
            *("--limit-seconds", str(LIMIT), "--safety-margin", "0s", *self.shape),
        )


MIN = ("--tier", "min", "--workers", "2")
VERDICT = ("--tier", "target", "--generations", "3", "--workers", "2")
CASES = {
    "a smoke test in a window": Case(MIN),
    "a verdict in a window": Case(VERDICT),
    "no verdict, on one device, in open hours": Case(
        (*VERDICT[:-1], "1", "--confirm-seeds", "0"), "--max-hours"
    ),
}
PAID = {
    "a smoke test in device-hours": Case(MIN, "--max-device-hours"),
    "a verdict in device-hours": Case(VERDICT, "--max-device-hours"),
    "a verdict for money": Case(VERDICT, "--max-cost", ("--price-per-device-hour", "1")),
}


def page(product: Product, *words: str) -> dict[str, Any]:
    """The one tier of a plan's page."""
    (tier,) = product.json("plan", "phase1", *words)["tiers"]
    assert isinstance(tier, dict)
    return tier


def answers(tier: dict[str, Any], *words: str) -> set[str]:
    """What the checklist says to the questions with one of these words in them."""
    asked = [i for i in tier["checklist"] if any(word in i["question"] for word in words)]
    assert len(asked) == len(words)
    return {item["verdict"] for item in asked}


def fits_the_run(product: Product, *words: str) -> bool:
    """Whether the search has all its generations; else a cap ended it, and nothing is exceeded."""
    done = product("phase1", *words, code=None)
    books = Books.of(product.run_directory())
    asked = len(books.generations)
    reached = books.shape[1] == asked and books.is_concluded
    if not reached:
        assert done.code in {0, 4}, done  # 0: what it found was shown to be better
        assert "budget" in {fired.rule for fired in books.fired}
    assert not books.overshoots()
    product.verify()
    return reached


@pytest.mark.parametrize("suffices", [True, False])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_page_fit_and_run_agree_on_time(product: Product, case: Case, suffices: bool) -> None:
    (asked,) = product.json("plan", "phase1", "--fit", *case.words(1.0))["choices"][:1]
    words = case.words(asked["needed_hours"] * (1.4 if suffices else 0.8))
    fit = product.json("plan", "phase1", "--fit", *words)["choices"][0]
    assert fit["fits"] is suffices
    tier = page(product, *words)
    assert answers(tier, "wall clock", "cap") == {"pass" if suffices else "fail"}
    assert fits_the_run(product, *words) is suffices


@pytest.mark.parametrize("suffices", [True, False])
@pytest.mark.parametrize("case", PAID.values(), ids=PAID)
def test_page_and_run_agree_on_what_is_paid(product: Product, case: Case, suffices: bool) -> None:
    """An attempt reserves its limit and some 10 s; a verdict keeps another reservation free."""
    reserved = (1 if case.shape is MIN else 2) * (LIMIT + 10) / HOUR
    words = case.words(reserved * (1.4 if suffices else 0.8))
    assert answers(page(product, *words), "cap") == {"pass" if suffices else "fail"}
    assert fits_the_run(product, *words) is suffices


@pytest.mark.slow
@pytest.mark.parametrize("suffices", [True, False])
def test_they_agree_where_the_evaluations_take_the_time(product: Product, suffices: bool) -> None:
    base = (
        *("--objective", "sphere", "--executor", "local", "--workers", "2", "--set"),
        *("seconds=0.4", "--set", "noise=0.01"),
    )
    product("calibrate", *base)
    search = (*base, "--tier", "target", "--limit-seconds", "2", "--safety-margin", "0s")
    whole = product.json("plan", "phase1", "--fit", *search, "--window", "1h")["choices"][0]
    spare = 20 if suffices else -0.5 * HOUR * whole["hours"]
    words = (*search, "--window", f"{HOUR * whole['needed_hours'] + spare:.0f}s")
    assert product.json("plan", "phase1", "--fit", *words)["choices"][0]["fits"] is suffices
    assert answers(page(product, *words), "wall clock") == {"pass" if suffices else "fail"}
    assert fits_the_run(product, *words) is suffices


@pytest.mark.xfail(strict=True, reason="plan and plan --fit forecast one run by two formulas")
def test_one_run_has_one_forecast(product: Product) -> None:
    words = (*CASES["a verdict in a window"].base, "--window", "9h")
    fit = product.json("plan", "phase1", "--fit", *words)["choices"][0]
    assert page(product, *words)["simulated"]["hours_p50"] == pytest.approx(fit["hours"])


def test_fit_offers_each_way_to_spend_a_window_once(product: Product) -> None:
    words = ("--objective", "sphere", "--workers", "2", "--assume-eval-seconds", "60")
    found = product.json("plan", "phase1", "--tier", "max", "--fit", "--window", "1h", *words)
    sizes = ("population", "generations", "seeds_per_candidate", "settings", "needed_hours")
    offered = [[choice[size] for size in sizes] for choice in found["choices"]]
    assert len(offered) > 2
    assert all(offered.count(one) == 1 for one in offered)


@pytest.mark.xfail(strict=True, reason="doctor and plan measure a run's disk by two tables")
def test_doctor_and_plan_agree_on_the_disk(product: Product) -> None:
    words = ("--objective", "sphere", "--tier", "min")
    needed = page(product, *words)["room"]["needed"]
    sections = product.json("doctor", "--quick", *words[:2], code=None)
    assert f"{needed / 2**20:.3g} MiB" in str(sections)


def test_plan_writes_nothing(product: Product) -> None:
    product("plan", "phase1", "--objective", "sphere", "--assume-eval-seconds", "1")
    assert not any(product.folder.iterdir())


def test_calibrating_twice_measures_once_and_says_so(product: Product) -> None:
    words = ("calibrate", "--objective", "sphere", "--executor", "inline")
    first, second = product(*words), product(*words)
    assert "--again" not in first.out
    assert "--again" in second.out
    assert len(Books.of(product.run_directory("sphere-*")).attempts) == 8


@pytest.mark.slow
def test_a_condition_of_equal_work_costs_what_was_calibrated(product: Product) -> None:
    product.write("text.txt", "\n\n".join(f"{7**i} tells of {11**i} and more" for i in range(300)))
    file = product.write(
        "campaign.toml",
        """objective = "nanochat"
        training = { data = "text.txt", target_flops = 2.5e9 }
        backend = { executor = "inline", workers = 1 }
        [[campaign.conditions]]
        name = "slow"
        training.matrix_lr = 0.01
        """,
    )
    measured = product.json("calibrate", "--seeds", "2", "--config", file)["calibration"]
    plan = product.json("plan", "campaign", file)
    (slow,) = (one for one in plan["conditions"] if one["name"] == "slow")
    assert slow["seconds"] == measured["median_seconds"]
