"""What fits under every cap, exactly, and what an attempt leaves when it is over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.accounts import Accounts
from budgets.events import Key
from budgets.plan import Caps

A: Key = (None, 0, 0, 5)
B: Key = (None, 0, 1, 5)
C: Key = ("winner", 0, 0, 5)
MINUTE = 60_000


def books(price: float = 2.0, comparison_cap: int = 1, **caps: Any) -> Accounts:
    """Two evaluations and one comparison evaluation, with a session that is open."""
    found = Caps.model_validate({"evaluations": 2, **caps})
    return Accounts(found, price, comparison_cap).open_session()


def refused(accounts: Accounts, reserve_ms: int = MINUTE, **more: Any) -> str:
    refusal = accounts.refusal(reserve_ms, **more)
    return "" if refusal is None else refusal.currency


def test_each_kind_of_evaluation_has_a_cap_of_its_own() -> None:
    accounts = books().reserve(A, MINUTE).reserve(B, MINUTE)
    assert refused(accounts) == "evaluations"
    assert refused(accounts, compares=True) == ""
    accounts = accounts.reserve(C, MINUTE, compares=True)
    assert refused(accounts, compares=True) == "comparison evaluations"
    accounts = accounts.settle(A, 1000, final=False)
    assert refused(accounts) == ""  # what was lost uses no evaluation up
    assert refused(accounts.settle(C, 1000, final=True), compares=True) != ""
    assert accounts.settle(B, 1000, final=True).evaluations == 1


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
    assert (refusal.currency, refusal.flag) == (currency, flag)
    held = accounts.reserve(A, MINUTE)
    assert held.table[currency].free == 0
    kept = accounts.refusal(MINUTE, keep=(1e-6, 1e-6))  # for others
    assert kept is not None
    assert kept.currency == currency
    with pytest.raises(ValueError, match=currency):
        accounts.reserve(A, MINUTE + 1)


def test_what_an_attempt_took_replaces_what_it_might_have_taken() -> None:
    accounts = books(device_hours=1.0).reserve(A, MINUTE).settle(A, 7, final=True)
    assert (accounts.device_ms, accounts.reserved_ms) == (7, 0)
    accounts = accounts.reserve(B, MINUTE).settle(B, MINUTE + 3, final=False)
    assert accounts.device_ms == MINUTE + 10
    for wrong in (A, C):
        with pytest.raises(ValueError, match="without a reservation"):
            accounts.settle(wrong, 1, final=True)
    with pytest.raises(ValueError, match="already holds"):
        accounts.reserve(A, 1).reserve(A, 1)


def test_attempts_at_once_share_the_wall_clock_and_a_dead_session_was_open_as_long() -> None:
    accounts = books(hours=2 / 60).reserve(A, MINUTE).tick(MINUTE // 2).reserve(B, MINUTE)
    assert accounts.table["wall clock"].used == MINUTE * 3 // 2
    died = accounts.open_session()
    assert died.table["wall clock"].used == MINUTE * 3 // 2
    assert died.settle(B, MINUTE, final=False).settle(A, 1, final=True).wall_ms == MINUTE * 3 // 2
    assert died.tick(20_000).tick(10_000).sessions_ms == (MINUTE // 2, 20_000)
    settled = died.settle(A, 1, final=False)
    assert refused(settled, MINUTE // 2) == ""
    assert refused(settled, MINUTE // 2 + 1) == "wall clock"


def test_a_clock_that_is_set_back_gains_no_time() -> None:
    accounts = books().open_session(20).tick(5, 15)
    assert accounts.now_ms == 25
    assert accounts.tick(6, 90).open_session(30).tick(2, 31).now_ms == 92


@pytest.mark.parametrize("slots", [(), (1,), (0, 1)])
def test_the_lowest_free_slot_is_next(slots: tuple[int, ...]) -> None:
    accounts = books()
    for key, slot in zip((A, B), slots, strict=False):
        accounts = accounts.reserve(key, 1, slot=slot)
    assert accounts.free_slot == min({0, 1, 2} - set(slots))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, MINUTE), st.booleans())))
def test_whatever_is_tried_no_cap_is_overdrawn(tries: list[tuple[int, int, bool]]) -> None:
    accounts = books(device_hours=0.03, hours=0.03, cost=0.05)
    for candidate, size, final in tries:
        key = (None, 0, candidate, 5)
        if key in accounts.holds:
            accounts = accounts.settle(key, min(size, accounts.holds[key].reserve_ms), final=final)
        elif accounts.refusal(size) is None:
            accounts = accounts.reserve(key, size)
        for account in accounts.table.values():
            assert account.cap is None or account.used <= account.cap
