"""No cap is overshot: what fits exactly is run, what needs one more is not, also through kills.

The judge is the books that these tests keep of a ledger's raw records. An attempt sets its worst
case aside before it starts (its time limit, and twice five seconds to end it), and is charged all
of it when nobody knows what became of it.
"""

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.books import LEDGER, Books, cut, sealed
from tests.acceptance.product import Product

WORST = 60  # seconds that an attempt may take
TERMS = f"--objective sphere --executor inline --run-id run --limit-seconds {WORST - 10}"
KNOWN = f"{TERMS} --assume-eval-seconds 0.001"
MIN = "phase1 --tier min --population 4 --workers 1 --set seconds=0.02"
"""Sixteen evaluations, one at a time."""
VERDICT = "phase1 --tier target --population 4 --generations 2 --workers 2 --set noise=0.01"
"""Eight, two at a time, and the comparison of the winner with the baseline on fresh seeds."""
HOUR_MS = 3_600_000
PRICE = 7
"""Of a device-hour, where a cap on money is given."""


def in_slow(value: str) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


TIMES = ("device-hours", "hours", "cost")


def cap_of(currency: str, seconds: float) -> list[object]:
    """Options: that cap, which so many seconds of one device exhaust."""
    if currency == "cost":
        return ["--price-per-device-hour", PRICE, "--max-cost", repr(PRICE * seconds / 3600)]
    return [f"--max-{currency}", repr(seconds / 3600)]


def check_books(product: Product, run: Path) -> Books:
    """No cap was overshot, and what the product says was spent is what these books say."""
    books = Books.of(run)
    assert books.overshoots() == []
    balances = product.json("status", run)["balances"]
    spent, reserved, cap = (
        {one["currency"]: one[column] for one in balances}
        for column in ("spent", "reserved", "cap")
    )
    for one in balances:
        left = None if one["cap"] is None else one["cap"] - one["spent"] - one["reserved"]
        assert one["free"] == (left and pytest.approx(max(0, left), abs=1e-9)), one
    device_ms = books.paid_before_ms + books.device_ms
    compared = len(books.results) - len(books.searched)
    assert spent["evaluations"] == len(books.searched) <= cap["evaluations"]
    assert spent.get("evaluations apart", 0) == compared <= cap.get("evaluations apart", 0)
    assert round(spent["device-hours"] * HOUR_MS) == device_ms
    assert round(spent["hours open"] * HOUR_MS) == books.open_ms
    price = books.plan["price_per_device_hour"]
    assert spent["cost"] == pytest.approx(device_ms / HOUR_MS * price, rel=1e-9)
    held = sum(attempt.reserved_ms for attempt in books.open_attempts)
    assert round(reserved["device-hours"] * HOUR_MS) == held
    product.verify(run)
    return books


def lose(run: Path, at: int) -> int:
    """Kill the run when it has made that reservation, on a machine that loses all evaluations.

    Returns how many attempts were open. A negative number counts from the end.
    """
    cut(run, Books.of(run).uses[at].record + 1)
    shutil.rmtree(run / "eval")
    return len(Books.of(run).open_attempts)


@pytest.mark.parametrize(("cap", "evaluations", "code"), [(3, None, 2), (7, 4, 0), (8, 8, 0)])
def test_as_many_whole_generations_are_evaluated_as_the_cap_pays_for(
    product: Product, cap: int, evaluations: int | None, code: int
) -> None:
    product(*f"{MIN} {KNOWN}".split(), "--max-evals", cap, code=code)
    if evaluations is not None:
        assert len(check_books(product, product.run_directory()).searched) == evaluations


@pytest.mark.parametrize("currency", [*TIMES, "window"])
@pytest.mark.parametrize(("spare", "code"), [(30, 0), (-0.01, 4)])
def test_nothing_starts_whose_worst_case_does_not_fit(
    product: Product, currency: str, spare: float, code: int
) -> None:
    cap = ["--window", f"{WORST + 100 + spare}s", "--safety-margin", "100s"]
    product(
        *f"{MIN} {KNOWN}".split(),
        *(cap if currency == "window" else cap_of(currency, WORST + spare)),
        code=code,
    )
    books = check_books(product, product.run_directory())
    assert len(books.attempts) == (0 if code else 16)


def test_a_generation_begins_if_it_fits_to_the_millisecond(product: Product) -> None:
    """As it is expected to go, its last attempt at its worst."""
    expected = WORST + 3 * 0.001
    for name, spare in (("fits", 0.0005), ("short", -0.0005)):
        cap = cap_of("device-hours", expected + spare)
        product(*f"{MIN} {KNOWN}".split(), "--run-id", name, *cap, code=4)
        books = check_books(product, product.run_directory(name))
        assert bool(books.attempts) == (name == "fits")


@pytest.mark.parametrize("currency", ["device-hours", "hours", in_slow("cost")])
def test_lost_attempts_are_charged_and_the_cap_holds_until_it_is_raised(
    product: Product, currency: str
) -> None:
    """Two worst cases fit under the cap: after the second lost attempt nothing starts."""
    command = [*f"{MIN} {KNOWN}".split(), *cap_of(currency, 2 * WORST + 30)]
    product(*command)
    run = product.run_directory()
    for kill, code in ((1, 0), (2, 4)):
        assert lose(run, kill - 1) == 1
        check_books(product, run)  # as it stands after the kill
        product(*command, code=code)
        books = check_books(product, run)
        assert books.statuses["lost"] == kill
    assert books.device_ms == 2 * WORST * 1000

    product("amend", run, *cap_of(currency, 3 * WORST + 30)[-2:], "--reason", "a test")
    product(*command)
    assert check_books(product, run).statuses == {"lost": 2, "ok": 16}


@pytest.mark.parametrize("currency", ["device-hours", in_slow("hours"), in_slow("cost")])
def test_caps_hold_in_the_comparison_on_fresh_seeds(product: Product, currency: str) -> None:
    """After two worst cases there is room for another one, or for all of it but a second."""
    for spare, code in ((WORST + 30, 0), (WORST - 1, 4)):
        command = [*f"{VERDICT} {KNOWN}".split(), *cap_of(currency, 2 * WORST + spare)]
        product(*command)
        run = product.run_directory("run")
        if currency == "hours":  # two at a time take no longer than one
            assert lose(run, -1) == 2
            product(*command)
        assert lose(run, -1) == 2
        product(*command, code=code)
        assert check_books(product, run).is_concluded == (code == 0)
        shutil.rmtree(product.folder / "artifacts")


def test_a_cap_on_evaluations_may_fall_to_what_is_in_use_and_rise_again(product: Product) -> None:
    command = f"{MIN} {KNOWN}".split()
    product(*command)
    run = product.run_directory()
    lose(run, 7)  # seven are settled, one is open
    for cap, code in ((7, 2), (8, 0), (12, 0)):
        product("amend", run, "--max-evals", cap, "--reason", "a test", code=code)
    product(*command)
    assert check_books(product, run).statuses == {"lost": 1, "ok": 12}


@pytest.mark.parametrize(("spare", "code"), [(30, 0), (-1, 4)])
def test_a_run_resumed_near_its_deadline_starts_only_what_ends_before_it(
    product: Product, spare: float, code: int
) -> None:
    """A day's window, less a margin of an hour, of a run that was begun and killed a day ago."""
    command = [*f"{MIN} {KNOWN}".split(), "--window", "24h", "--safety-margin", "1h"]
    product(*command)
    run = product.run_directory()
    lose(run, 0)
    lines = Books.of(run).lines
    began = datetime.fromisoformat(lines[0]["at"])
    deadline = datetime.now(began.tzinfo) + timedelta(seconds=WORST + spare)
    earlier = deadline - timedelta(hours=23) - began
    at = [(datetime.fromisoformat(line["at"]) + earlier).isoformat() for line in lines]
    shifted = ({**line, "at": moment} for line, moment in zip(lines, at, strict=True))
    (run / LEDGER).write_bytes(sealed(shifted))

    product(*command, code=code)

    assert len(check_books(product, run).searched) == (0 if code else 16)
    if code:
        product("amend", run, "--window", "25h", "--safety-margin", "1h", "--reason", "a test")
        product(*command)
        assert len(check_books(product, run).searched) == 16


def test_a_calibration_counts_against_the_caps_of_its_run(product: Product) -> None:
    """A worst case is lost in it; the rest of it, and then the run, need another one."""
    for spare, code in ((30, 0), (-1, 4)):
        command = [*f"{MIN} {TERMS}".split(), *cap_of("device-hours", 2 * WORST + spare)]
        product(*command)
        run = product.run_directory("run")
        (calibration,) = (path.parent for path in product.folder.glob("**/calibration/*/eval"))
        shutil.rmtree(run)
        assert lose(calibration, 0) == 1
        product(*command, code=code)
        paid = check_books(product, calibration).device_ms
        assert paid >= WORST * 1000
        assert run.exists() == (code == 0)
        if run.exists():
            assert check_books(product, run).paid_before_ms == paid
        shutil.rmtree(product.folder / "artifacts")


def test_a_run_that_a_rule_pauses_ends_with_3(product: Product) -> None:
    product(*f"{MIN} {KNOWN}".split(), "--set", "failure_rate=1", code=3)
    assert check_books(product, product.run_directory()).fired[0].decision == "pause"


def test_verify_accepts_caps_that_hold_what_was_in_use_and_not_a_millisecond_less(
    product: Product,
) -> None:
    """One run under a cap of each currency: calibrated, with a verdict, and with lost attempts."""
    caps = [word for currency in TIMES for word in cap_of(currency, 9e5)]
    command = [*f"{VERDICT} {TERMS}".split(), *caps, "--window", "250h", "--safety-margin", "10s"]
    product(*command)
    run = product.run_directory("run")
    assert lose(run, 11) == 2
    product(*command)
    shutil.rmtree(run / "eval")  # it names the plan that is changed here
    books = check_books(product, run)
    assert books.paid_before_ms > 0
    evaluations, device_ms, open_ms, end_ms = (
        max(getattr(use, name) for use in books.uses)
        for name in ("evaluations", "device_ms", "open_ms", "end_ms")
    )
    window = {"hours": None, "until": None, "margin_seconds": 10}
    over_ms = end_ms - books.deadline_ms({**window, "hours": 0})
    cut(run, len(books.lines))

    for spare, code in ((0.5, 0), (-0.5, 6)):
        edges: dict[str, Any] = {
            "evaluations": evaluations + round(spare - 0.1),
            "device_hours": (device_ms + spare) / HOUR_MS,
            "hours": (open_ms + spare) / HOUR_MS,
            "cost": (device_ms + spare) / HOUR_MS * PRICE,
            "window": {**window, "hours": (over_ms + spare) / HOUR_MS},
        }
        for name, edge in edges.items():
            lines = json.loads(json.dumps(books.lines))
            lines[0]["event"]["plan"]["caps"][name] = edge
            (run / LEDGER).write_bytes(sealed(lines))
            assert product("verify", run, code=None).code == code, (name, spare)
