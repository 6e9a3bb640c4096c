"""Spent plus reserved never passes a cap, in any currency, whatever the order of events."""

from math import floor
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from budgets.accounts import MS_PER_HOUR, Accounts, Key
from budgets.plan import Caps

FIRST, SECOND, THIRD = (0, 0, 5), (0, 1, 5), (0, 2, 5)


def opened(price: float = 0.0, **caps: Any) -> Accounts:
    """Accounts in their first session. Caps on time are in milliseconds here."""
    hours = {name: ms / MS_PER_HOUR for name in ("device_hours", "hours") if (ms := caps.get(name))}
    return Accounts(Caps.model_validate({"evaluations": 10, **caps, **hours}), price).open_session()


class AnyOrder(RuleBasedStateMachine):
    """Keeps its own plain books beside the accounts and compares."""

    @initialize(
        evaluations=st.integers(1, 6),
        device_ms=st.none() | st.integers(1, 400),
        wall_ms=st.none() | st.integers(1, 400),
        cost_ms=st.none() | st.integers(1, 400),
        price=st.sampled_from([0.37, 1.0, 2.5]),
    )
    def begin(
        self,
        evaluations: int,
        device_ms: int | None,
        wall_ms: int | None,
        cost_ms: int | None,
        price: float,
    ) -> None:
        caps = {"device_hours": device_ms, "hours": wall_ms}
        self.price = price
        self.caps = Caps(
            evaluations=evaluations,
            cost=None if cost_ms is None else cost_ms / MS_PER_HOUR * price,
            **{name: None if ms is None else ms / MS_PER_HOUR for name, ms in caps.items()},
        )
        self.accounts = Accounts(self.caps, price)
        self.caps_ms = (device_ms, wall_ms, cost_ms)
        self.held: dict[Key, tuple[int, int, int]] = {}  # reserved, session, since
        self.sessions: list[int] = []
        self.final, self.charged, self.lost, self.key = 0, 0, 0, 0
        self.open_session()

    @rule()
    def open_session(self) -> None:
        self.accounts = self.accounts.open_session()
        self.sessions.append(0)

    def ends(self, held: dict[Key, tuple[int, int, int]]) -> list[int]:
        """When each session may have ended at the latest."""
        return [
            max([now, *(since + ms for ms, s, since in held.values() if s == session)])
            for session, now in enumerate(self.sessions)
        ]

    @rule(by_ms=st.integers(1, 60))
    def tick(self, by_ms: int) -> None:
        """Time passes: an attempt is killed at its limit, and an idle run ends at its cap."""
        latest = self.ends(self.held)[-1]
        wall_ms = None if self.caps.hours is None else floor(self.caps.hours * MS_PER_HOUR)
        now = self.sessions[-1] + by_ms
        if any(session == len(self.sessions) - 1 for _, session, _ in self.held.values()):
            now = min(now, latest)
        elif wall_ms is not None:
            now = min(now, latest + wall_ms - sum(self.ends(self.held)))
        self.accounts = self.accounts.tick(now)
        self.sessions[-1] = max(self.sessions[-1], now)

    @rule(ms=st.integers(0, 120))
    def reserve(self, ms: int) -> None:
        self.key += 1
        key = (0, self.key, 5)
        wanted = {**self.held, key: (ms, len(self.sessions) - 1, self.sessions[-1])}
        device, wall, cost = (None if cap is None else cap for cap in self.caps_ms)
        device_ms = self.charged + sum(reserved for reserved, _, _ in wanted.values())
        refusal = self.accounts.refusal(ms)
        if refusal is None:
            self.accounts = self.accounts.reserve(key, ms)
            self.held = wanted
            return
        with pytest.raises(ValueError, match="beyond a cap") as refused:
            self.accounts.reserve(key, ms)
        assert str(refusal) in str(refused.value)
        assert (  # one millisecond may be lost to a cap's fraction of an hour
            self.final + len(wanted) > self.caps.evaluations
            or (device is not None and device_ms > device - 1)
            or (cost is not None and device_ms > cost - 1)
            or (wall is not None and sum(self.ends(wanted)) > wall - 1)
        )

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10), share=st.floats(0, 1), final=st.booleans())
    def settle(self, which: int, share: float, final: bool) -> None:
        key = list(self.held)[which % len(self.held)]
        reserved, session, since = self.held.pop(key)
        charge = round(share * reserved)
        self.accounts = self.accounts.settle(key, charge, final=final)
        self.final += final
        self.charged += charge
        self.lost += 0 if final else charge
        if session < len(self.sessions) - 1:
            self.sessions[session] = max(self.sessions[session], since + charge)

    @invariant()
    def within_every_cap(self) -> None:
        accounts, caps = self.accounts, self.caps
        device_ms = accounts.device_ms + accounts.reserved_ms
        assert accounts.evaluations + len(accounts.holds) <= caps.evaluations
        assert caps.device_hours is None or device_ms <= caps.device_hours * MS_PER_HOUR
        assert caps.hours is None or accounts.committed_wall_ms <= caps.hours * MS_PER_HOUR
        assert caps.cost is None or device_ms / MS_PER_HOUR * self.price <= caps.cost * (1 + 1e-12)
        assert accounts.wall_ms <= accounts.committed_wall_ms

    @invariant()
    def books_agree(self) -> None:
        accounts = self.accounts
        assert accounts.evaluations == self.final
        assert accounts.device_ms == self.charged
        assert accounts.lost_ms == self.lost
        assert accounts.overrun_ms == 0
        assert accounts.reserved_ms == sum(ms for ms, _, _ in self.held.values())
        assert accounts.wall_ms == sum(self.sessions)
        assert accounts.committed_wall_ms == sum(self.ends(self.held))

    @invariant()
    def nothing_open_is_nothing_reserved(self) -> None:
        if not self.held:
            assert self.accounts.reserved_ms == 0
            assert self.accounts.committed_wall_ms == self.accounts.wall_ms


def test_no_order_of_events_passes_a_cap() -> None:
    run_state_machine_as_test(AnyOrder, settings=settings(max_examples=150, stateful_step_count=30))


def test_nothing_starts_before_a_session_is_open() -> None:
    with pytest.raises(ValueError, match="no session is open"):
        Accounts(Caps(evaluations=1)).reserve(FIRST, 1)


def test_time_without_a_session_is_nobodys() -> None:
    assert Accounts(Caps(evaluations=1)).tick(100).wall_ms == 0


def test_an_evaluation_holds_one_reservation_at_a_time() -> None:
    accounts = opened().reserve(FIRST, 10)
    with pytest.raises(ValueError, match=r"\(0, 0, 5\) already holds"):
        accounts.reserve(FIRST, 10)


def test_what_was_never_reserved_cannot_be_settled() -> None:
    accounts = opened().reserve(FIRST, 10).settle(FIRST, 5, final=True)
    for key in (FIRST, SECOND):
        with pytest.raises(ValueError, match="without a reservation"):
            accounts.settle(key, 5, final=True)


def test_reserving_and_settling_leave_the_accounts_before_as_they_were() -> None:
    before = opened()
    reserved = before.reserve(FIRST, 10)
    reserved.settle(FIRST, 5, final=True)
    assert (before.reserved_ms, reserved.reserved_ms) == (0, 10)
    assert (before.evaluations, reserved.evaluations) == (0, 0)


def test_the_last_evaluation_under_the_cap_may_start_and_no_other() -> None:
    accounts = opened(evaluations=2).reserve(FIRST, 1)
    refusal = accounts.reserve(SECOND, 1).refusal(1)
    assert accounts.refusal(1) is None
    assert refusal is not None
    assert (refusal.currency, refusal.needed, refusal.free) == ("evaluations", 1, 0)
    assert str(refusal) == (
        "evaluations: an attempt must be able to use 1 evaluations, 0 evaluations are free "
        "(--max-evals)"
    )


def test_a_lost_attempt_costs_device_time_but_no_evaluation() -> None:
    accounts = opened(evaluations=1).reserve(FIRST, 10).settle(FIRST, 10, final=False)
    assert (accounts.evaluations, accounts.device_ms, accounts.lost_ms) == (0, 10, 10)
    accounts = accounts.reserve(FIRST, 10).settle(FIRST, 4, final=True)
    assert (accounts.evaluations, accounts.device_ms, accounts.lost_ms) == (1, 14, 10)
    assert accounts.refusal(1) is not None


@pytest.mark.parametrize(("wanted", "flag"), [(40, None), (41, "--max-device-hours")])
def test_device_time_is_free_to_the_last_millisecond(wanted: int, flag: str | None) -> None:
    accounts = opened(device_hours=100).reserve(FIRST, 30).settle(FIRST, 20, final=True)
    accounts = accounts.reserve(SECOND, 40)
    assert accounts.device_hours_free == pytest.approx(40 / MS_PER_HOUR)
    refusal = accounts.refusal(wanted)
    assert (refusal and refusal.flag) == flag


def test_a_refusal_of_device_time_says_what_is_needed_and_free() -> None:
    hour = MS_PER_HOUR
    refusal = opened(device_hours=2 * hour).reserve(FIRST, hour // 2).refusal(3 * hour)
    assert str(refusal) == (
        "device time: an attempt must be able to use 3 h 00 min of device time, 1 h 30 min are "
        "free (--max-device-hours)"
    )


def test_money_is_device_time_times_its_price() -> None:
    hour = MS_PER_HOUR
    accounts = opened(price=2.5, cost=10.0).reserve(FIRST, hour).settle(FIRST, hour, final=True)
    assert (accounts.cost, accounts.cost_free) == (2.5, 7.5)
    accounts = accounts.reserve(SECOND, 2 * hour)
    assert (accounts.cost, accounts.cost_free) == (2.5, 2.5)
    assert accounts.refusal(hour) is None
    assert str(accounts.refusal(hour + 1)) == (
        "money: an attempt must be able to use 2.5 of money, 2.5 of money are free (--max-cost)"
    )


def test_without_a_cap_on_money_there_is_no_limit_to_it() -> None:
    accounts = opened(price=2.5)
    assert accounts.cost_free is accounts.device_hours_free is accounts.hours_free is None
    assert accounts.refusal(10**12) is None


@pytest.mark.parametrize(("cost", "flag"), [(1.0, "--max-cost"), (3.0, "--max-device-hours")])
def test_the_tighter_of_two_caps_on_device_time_is_the_one_named(cost: float, flag: str) -> None:
    accounts = opened(price=1.0, cost=cost, device_hours=2 * MS_PER_HOUR)
    refusal = accounts.refusal(4 * MS_PER_HOUR)
    assert refusal is not None
    assert refusal.flag == flag
    assert refusal.free == min(cost, 2.0)


def test_attempts_side_by_side_commit_the_wall_clock_once() -> None:
    accounts = opened().reserve(FIRST, 100).tick(30).reserve(SECOND, 100)
    assert (accounts.wall_ms, accounts.committed_wall_ms) == (30, 130)
    accounts = accounts.tick(90).settle(SECOND, 60, final=True)
    assert (accounts.wall_ms, accounts.committed_wall_ms) == (90, 100)
    accounts = accounts.tick(95).settle(FIRST, 95, final=True)
    assert (accounts.wall_ms, accounts.committed_wall_ms) == (95, 95)


@pytest.mark.parametrize(("wanted", "refused"), [(70, False), (71, True)])
def test_the_wall_clock_is_free_to_the_last_millisecond(wanted: int, refused: bool) -> None:
    refusal = opened(hours=100).tick(30).refusal(wanted)
    assert (refusal is not None) == refused
    if refusal is not None:
        assert (refusal.currency, refusal.flag) == ("wall clock", "--max-hours")
        assert refusal.free * MS_PER_HOUR == pytest.approx(70)


@pytest.mark.parametrize(("aside_ms", "refused"), [(40, False), (41, True)])
def test_hours_set_aside_are_not_free(aside_ms: int, refused: bool) -> None:
    accounts = opened(hours=100).tick(30)
    refusal = accounts.refusal(30, aside=(0.0, aside_ms / MS_PER_HOUR))
    assert (refusal is not None) == refused
    if refusal is not None:
        assert refusal.free * MS_PER_HOUR == pytest.approx(29)


def test_hours_free_leave_out_what_attempts_in_flight_may_take() -> None:
    accounts = opened(hours=100).tick(10).reserve(FIRST, 50)
    assert accounts.hours_free == pytest.approx(40 / MS_PER_HOUR)
    assert accounts.device_hours_free is None


def test_the_clock_never_runs_backwards() -> None:
    accounts = opened().tick(50)
    assert accounts.tick(20).wall_ms == 50
    assert accounts.tick(50) is accounts


def test_the_wall_clock_of_all_sessions_counts_and_the_time_between_does_not() -> None:
    accounts = opened().tick(50).open_session().tick(20).open_session().tick(5)
    assert accounts.sessions_ms == (50, 20, 5)
    assert accounts.wall_ms == 75


@pytest.mark.parametrize("final", [True, False], ids=["adopted", "lost"])
def test_an_attempt_settled_late_extends_the_session_it_ran_in(final: bool) -> None:
    accounts = opened().tick(10).reserve(FIRST, 100).tick(20).open_session().tick(7)
    assert (accounts.wall_ms, accounts.committed_wall_ms) == (27, 117)
    accounts = accounts.settle(FIRST, 60, final=final)
    assert accounts.sessions_ms == (70, 7)
    assert accounts.committed_wall_ms == 77


def test_an_attempt_settled_late_never_shortens_its_session() -> None:
    accounts = opened().reserve(FIRST, 100).tick(80).open_session()
    assert accounts.settle(FIRST, 30, final=True).sessions_ms == (80, 0)


def test_an_attempt_settled_late_extends_its_session_by_its_reservation_at_most() -> None:
    accounts = opened().reserve(FIRST, 100).open_session().settle(FIRST, 500, final=True)
    assert accounts.sessions_ms == (100, 0)


def test_an_attempt_of_this_session_leaves_the_clock_alone() -> None:
    assert opened().reserve(FIRST, 100).settle(FIRST, 60, final=True).wall_ms == 0


def test_what_goes_beyond_a_reservation_is_paid_and_counted() -> None:
    accounts = opened(device_hours=100).reserve(FIRST, 40).settle(FIRST, 130, final=True)
    assert (accounts.device_ms, accounts.overrun_ms) == (130, 90)
    refusal = accounts.refusal(0)
    assert refusal is not None
    assert "0 s are free" in str(refusal)
    assert accounts.device_hours_free == 0.0


def test_what_stays_within_a_reservation_is_no_overrun() -> None:
    accounts = opened().reserve(THIRD, 40).settle(THIRD, 40, final=True)
    assert accounts.overrun_ms == 0


def test_the_lowest_free_slot_is_the_next_one() -> None:
    accounts = Accounts(Caps(evaluations=9)).open_session()
    for seed in range(3):
        accounts = accounts.reserve((None, 0, 0, seed), 10, slot=accounts.free_slot)
    accounts = accounts.settle((None, 0, 0, 1), 5, final=True)
    assert accounts.free_slot == 1
