"""No cap is exceeded: what fits exactly runs, one evaluation more does not, also through kills.

These tests keep their own accounts of a ledger's raw records. An attempt reserves its worst case
before it starts (its time limit, and twice five seconds to end it), and is charged all of it if its
end is unknown.
"""

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.product.books import LEDGER, Books, cut, sealed
from tests.product.product import Product

WORST = 60  # seconds that an attempt may take
OPTIONS = (
    f"--objective sphere --executor inline --run-id run --set evaluation.limit_seconds={WORST - 10}"
)
KNOWN = f"{OPTIONS} --assume-eval-seconds 0.001"
MIN = "phase1 --tier min --set search.population=4 --workers 1 --set seconds=0.02"
SMALL = f"{MIN} {KNOWN}"
"""Sixteen evaluations, one at a time."""
VERDICT = (
    "phase1 --tier target --set search.population=4 --set search.generations=2 --workers 2"
    " --set noise=0.01"
)
"""Eight, two at a time, and the comparison of the winner with the baseline on fresh seeds."""
HOUR_MS = 3_600_000
PRICE = 7
"""Of a device-hour, where a cap on money is given."""


def cap_of(currency: str, seconds: float) -> str:
    """Options: that cap, which so many seconds of one device exhaust."""
    if currency == "window":
        return f"--window {100 + seconds}s --set budget.safety_margin=100s"
    if currency == "cost":
        price = f"--set budget.price_per_device_hour={PRICE}"
        return f"{price} --max-cost {PRICE * seconds / 3600!r}"
    return f"--max-{currency} {seconds / 3600!r}"


def checked(product: Product, command: str = "", code: int = 0, run: str = "run") -> Books:
    """Run a command, if there is one: no cap is overshot, and what is shown is what was spent."""
    if command:
        product(command, code=code)
    books = product.books(run)
    assert books.overshoots() == []
    document = product.json("status", run)
    books.check(document)
    for one in document["balances"]:
        is_capped = one["cap"] is not None and one["currency"] != "wall clock"
        assert not is_capped or one["spent"] <= one["cap"]
    product.verify(run)
    return books


def lose(run: Path, at: int) -> int:
    """Kill the run when it has made that reservation, on a machine that loses all evaluations.

    Returns how many attempts were open. A negative number counts from the end.
    """
    cut(run, Books.of(run).uses[at].record + 1)
    shutil.rmtree(run / "eval")
    return len(Books.of(run).open_attempts)


@pytest.mark.parametrize(
    ("currency", "spare", "attempts"),
    [
        *((currency, 30, 16) for currency in ("device-hours", "hours", "cost", "window")),
        *((currency, -0.01, 0) for currency in ("hours", "cost", "window")),
        ("device-hours", 0.0035, 1),  # a generation as it is expected to go, its last at its worst
        ("device-hours", 0.0025, 0),
    ],
)
def test_nothing_starts_whose_worst_case_does_not_fit(
    product: Product, currency: str, spare: float, attempts: int
) -> None:
    command = f"{SMALL} {cap_of(currency, WORST + spare)}"
    assert len(checked(product, command, 0 if attempts == 16 else 4).attempts) == attempts


@pytest.mark.parametrize("currency", ["device-hours", "hours"])
def test_lost_attempts_are_charged_and_the_cap_holds_until_it_is_raised(
    product: Product, currency: str
) -> None:
    """Two worst cases fit under the cap: after the second lost attempt nothing starts."""
    command = f"{SMALL} {cap_of(currency, 2 * WORST + 30)}"
    product(command)
    run = product.run_directory()
    for kill, code in ((1, 0), (2, 4)):
        assert lose(run, kill - 1) == 1
        checked(product)  # as it stands after the kill
        books = checked(product, command, code)
        assert books.statuses["lost"] == kill
    assert books.device_ms == 2 * WORST * 1000

    product(f"amend run {cap_of(currency, 3 * WORST + 30)} --reason why")
    assert checked(product, command).statuses == {"lost": 2, "ok": 16}


def test_caps_hold_in_the_comparison_on_fresh_seeds(product: Product) -> None:
    """After two worst cases there is room for another one, or for all of it but a second."""
    for spare, code in ((WORST + 30, 0), (WORST - 1, 4)):
        command = f"{VERDICT} {KNOWN} {cap_of('device-hours', 2 * WORST + spare)}"
        product(command)
        assert lose(product.run_directory("run"), -1) == 2
        assert checked(product, command, code).is_concluded == (code == 0)
        shutil.rmtree(product.folder / "artifacts")


def test_a_search_that_was_compared_stays_over_under_higher_caps(product: Product) -> None:
    """Two worst cases end it in its second generation, and a third one its comparison."""
    command = f"{VERDICT} {KNOWN} {cap_of('device-hours', 3 * WORST + 30)}"
    product(command)
    run = product.run_directory("run")
    for at, lost in ((6, 2), (-1, 1)):
        assert lose(run, at) == lost
        is_concluded = checked(product, command, 4).is_concluded
        assert is_concluded == (lost == 2)
    product(f"amend run {cap_of('device-hours', 9 * WORST)} --reason why")
    books = checked(product, command, 4)  # a No-Go, as one generation proves too little
    assert (books.is_concluded, len(books.searched)) == (True, 4)


def test_a_cap_may_fall_to_what_is_in_use_and_not_below(product: Product) -> None:
    product(SMALL)
    lose(product.run_directory(), 7)  # seven are settled, one is open
    caps = {f"--max-evals {count}": code for count, code in ((7, 2), (8, 0), (15, 0))}
    for seconds, code in ((WORST - 1, 2), (WORST + 30, 0), (3 * WORST, 0)):
        caps |= {cap_of(currency, seconds): code for currency in ("device-hours", "hours")}
    for cap, code in caps.items():
        product(f"amend run {cap} --reason why", code=code)
    assert checked(product, SMALL).statuses == {"lost": 1, "ok": 12}


def test_a_run_resumed_near_its_deadline_starts_only_what_ends_before_it(product: Product) -> None:
    """A day's window, less a margin of an hour, of a run that was begun and killed a day ago."""
    for spare, code in ((30, 0), (-1, 4)):
        shutil.rmtree(product.folder / "artifacts", ignore_errors=True)
        command = f"{SMALL} --window 24h --set budget.safety_margin=1h"
        product(command)
        run = product.run_directory()
        lose(run, 0)
        lines = Books.of(run).lines
        at = [datetime.fromisoformat(line["at"]) for line in lines]
        deadline = datetime.now(at[0].tzinfo) + timedelta(seconds=WORST + spare)
        earlier = deadline - timedelta(hours=23) - at[0]
        shifted = [
            {**line, "at": (moment + earlier).isoformat()}
            for line, moment in zip(lines, at, strict=True)
        ]
        (run / LEDGER).write_bytes(sealed(shifted))
        assert len(checked(product, command, code).searched) == (0 if code else 16)

    product("amend run --window 25h --reason why")
    assert len(checked(product, command).searched) == 16


def test_a_calibration_counts_against_the_caps_of_its_run(product: Product) -> None:
    """A worst case is lost in it; the rest of it, and then the run, need another one."""
    for spare, code in ((-1, 4), (30, 0)):
        shutil.rmtree(product.folder / "artifacts", ignore_errors=True)
        command = f"{MIN} {OPTIONS} {cap_of('device-hours', 2 * WORST + spare)}"
        product(command)
        shutil.rmtree(product.run_directory("run"))
        (calibration,) = (path.parent for path in product.folder.glob("**/calibration/*/eval"))
        assert lose(calibration, 0) == 1
        product(command, code=code)
        paid = checked(product, run=calibration.name).device_ms
        assert paid >= WORST * 1000
    assert checked(product).paid_before_ms == paid
    plan = product.books().plan
    shutil.rmtree(product.run_directory("run"))  # killed before the search's first record
    product(command)
    assert product.books().plan == plan


def test_verify_accepts_caps_that_hold_what_was_in_use_and_not_a_millisecond_less(
    product: Product,
) -> None:
    """One run under a cap of each currency: calibrated, with a verdict, and with lost attempts."""
    caps = " ".join(cap_of(currency, 9e5) for currency in ("device-hours", "hours", "cost"))
    command = f"{VERDICT} {OPTIONS} --window 250h --set budget.safety_margin=10s {caps}"
    command += " --set verdict.long_run=1"  # a longer one depends on what is expected of it
    product(command)
    run = product.run_directory("run")
    assert lose(run, 11) == 2
    books = checked(product, command)
    assert books.paid_before_ms > 0
    cut(run, len(books.lines))
    shutil.rmtree(run / "eval")  # it names the plan that is changed here

    used = {name: max(getattr(use, name) for use in books.uses) for name in books.uses[0].limits}
    window = books.plan["caps"]["window"]
    over_ms = used["end_ms"] - books.deadline_ms({**window, "hours": 0})
    for spare, code in ((0.5, 0), (-0.5, 6)):
        edges: dict[str, Any] = {
            "evaluations": used["evaluations"] + round(spare - 0.1),
            "device_hours": (used["device_ms"] + spare) / HOUR_MS,
            "hours": (used["open_ms"] + spare) / HOUR_MS,
            "cost": (used["device_ms"] + spare) / HOUR_MS * PRICE,
            "window": {**window, "hours": (over_ms + spare) / HOUR_MS},
        }
        for name, edge in edges.items():
            lines = json.loads(json.dumps(books.lines))
            lines[0]["event"]["plan"]["caps"][name] = edge
            (run / LEDGER).write_bytes(sealed(lines))
            assert product("verify", run, code=None).code == code, (name, spare)
