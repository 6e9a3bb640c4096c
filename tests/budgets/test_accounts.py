"""What fits under every cap, exactly, and what an attempt leaves when it is over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.accounts import Accounts
from budgets.events import Reserved, Settled, Status
from budgets.plan import Caps
from tests.budgets.conftest import settled, small_plan

A, B = (Reserved(generation=0, candidate=c, seed=5, attempt=1, reserve_ms=60_000) for c in (0, 1))
MINUTE = 60_000


def end(reserved: Reserved, charged_ms: int, *, final: bool = True) -> Settled:
    return settled(reserved, 1.0 if final else Status.LOST, charged_ms=charged_ms)


def books(**caps: Any) -> Accounts:
    """Two evaluations at a price of 2 an hour, with a session that is open."""
    found = Caps.model_validate({"evaluations": 2, **caps})
    plan = small_plan(caps=found, price_per_device_hour=2.0)
    return Accounts(plan).tick(0, opens=True)


def refused(accounts: Accounts, reserve_ms: int = MINUTE, **more: Any) -> str:
    refusal = accounts.refusal(reserve_ms, **more)
    return "" if refusal is None else refusal[0].name


@pytest.mark.parametrize(
    ("caps", "currency", "flag"),
    [
        ({"device_hours": 1 / 60}, "device time", "--max-device-hours"),
        ({"cost": 2 / 60}, "money", "--max-cost"),
        ({"hours": 1 / 60}, "wall clock", "--max-hours"),
    ],
)
def test_a_cap_is_met_to_the_millisecond(caps: Any, currency: str, flag: str) -> None:
    accounts = books(**caps)
    assert refused(accounts, MINUTE) == ""
    refusal = accounts.refusal(MINUTE + 1)
    assert refusal is not None
    assert (refusal[0].name, refusal[0].flag) == (currency, flag)
    assert accounts.reserve(A).table[currency].free == 0
    assert refused(accounts, MINUTE, keep=(1e-6, 1e-6)) == currency  # for others
    with pytest.raises(ValueError, match=currency):
        accounts.reserve(A.model_copy(update={"reserve_ms": MINUTE + 1}))


def test_attempts_at_once_share_the_wall_clock_and_a_dead_session_was_open_as_long() -> None:
    accounts = books(hours=2 / 60).reserve(A).tick(MINUTE // 2).reserve(B)
    assert accounts.table["wall clock"].used == MINUTE * 3 // 2
    died = accounts.tick(0, opens=True)
    assert died.table["wall clock"].used == MINUTE * 3 // 2
    both = died.settle(end(B, MINUTE, final=False)).settle(end(A, 1))
    assert both.wall_ms == MINUTE * 3 // 2
    assert died.tick(20_000).tick(10_000).sessions_ms == (MINUTE // 2, 20_000)
    left = died.settle(end(A, 1, final=False))
    assert refused(left, MINUTE // 2) == ""
    assert refused(left, MINUTE // 2 + 1) == "wall clock"


def test_a_clock_that_is_set_back_gains_no_time() -> None:
    accounts = books().tick(0, 20, opens=True).tick(5, 15)
    assert accounts.now_ms == 25
    assert accounts.tick(6, 90).tick(0, 30, opens=True).tick(2, 31).now_ms == 92


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, MINUTE), st.booleans())))
def test_whatever_is_tried_no_cap_is_overdrawn(attempts: list[tuple[int, int, bool]]) -> None:
    accounts = books(device_hours=0.03, hours=0.03, cost=0.05)
    for candidate, size, final in attempts:
        one = A.model_copy(update={"candidate": candidate, "reserve_ms": size})
        if (held := accounts.holds.get(one.place)) is not None:
            most = min(size, held.reserved.reserve_ms)
            accounts = accounts.settle(end(one, most, final=final))
        elif accounts.refusal(size) is None:
            accounts = accounts.reserve(one)
        for account in accounts.table.values():
            assert account.cap is None or account.used <= account.cap
