"""Five currencies and a deadline: what is spent, reserved and left of each.

The currencies are evaluations of the search, comparison evaluations, device time, wall clock and
money. `reserve` sets an attempt's worst case aside before it starts, `settle` replaces it by what
was measured, and `refusal` says what may still start. Time is whole milliseconds, so sums are
exact; money is device time times a price, so its account is device time with a cap of its own.

Each session (one process that had the ledger) is committed to the later of its last record and the
latest moment at which one of its attempts may end. The deadline is judged by the wall clock, or by
the session's own where that is later: a clock set back gains no time.
"""

from collections.abc import Mapping
from itertools import count
from math import inf
from typing import NamedTuple

from budgets.events import Reserved, Settled
from budgets.plan import Plan

MS_PER_HOUR = 3_600_000


class Attempt(NamedTuple):
    """One attempt at an evaluation: running, with its worst case reserved, until it is settled."""

    session: int
    reserved: Reserved
    settled: Settled | None = None
    reserved_ms: int = 0  # since its session opened


class Account(NamedTuple):
    """One currency, in counts or milliseconds; `per_unit` of them make a `unit`."""

    name: str
    unit: str
    flag: str  # of its cap; empty: the plan sets it
    spent: int
    reserved: int
    cap: float | None
    per_unit: float = 1.0

    @property
    def used(self) -> int:
        return self.spent + self.reserved

    @property
    def free(self) -> float | None:
        """What is neither spent nor reserved, in units; None without a cap."""
        return None if self.cap is None else max(0, self.cap - self.used) / self.per_unit

    @property
    def in_units(self) -> dict[str, str | float | None]:
        """Its fields in JSON documents."""
        return {
            "currency": self.name,
            "unit": self.unit,
            "spent": self.spent / self.per_unit,
            "reserved": self.reserved / self.per_unit,
            "free": self.free,
            "cap": None if self.cap is None else self.cap / self.per_unit,
        }

    def overrun(self, needed: float) -> float:
        """By how much that would exceed the cap; negative when it fits."""
        return -inf if self.cap is None else self.used + needed - self.cap


class Accounts(NamedTuple):
    """Spent and reserved so far under a plan. A value: every operation returns a new one."""

    plan: Plan
    began_ms: int = 0  # since 1970, like the next two: a window of hours begins then
    now_ms: int = 0
    session_began_ms: int = 0
    before_ms: int = 0  # wall clock of the calibration made for this run
    sessions_ms: tuple[int, ...] = ()
    device_ms: int = 0  # spent, with or without a result
    evaluations: int = 0  # of the search, with a result
    comparisons: int = 0  # evaluations beside the search
    holds: Mapping[str, Attempt] = {}  # running, by place

    @property
    def deadline_ms(self) -> float | None:
        """When evaluations must be over, since 1970."""
        window = self.plan.caps.window
        return None if window is None else window.deadline_ms(self.began_ms)

    @property
    def table(self) -> dict[str, Account]:
        """Every currency by name, and the time until the deadline."""
        caps, price, hour = self.plan.caps, self.plan.price_per_device_hour, MS_PER_HOUR
        comparing = sum(own.reserved.comparison is not None for own in self.holds.values())
        cost = None if caps.cost is None else caps.cost / price
        cost_ms, hours_ms, device_ms = (
            None if hours is None else hours * hour
            for hours in (cost, caps.hours, caps.device_hours)
        )
        search = (self.evaluations, len(self.holds) - comparing, caps.evaluations)
        beside = (self.comparisons, comparing, self.plan.comparison_evaluations)
        device = (self.device_ms, self.reserved_ms)
        wall = (self.wall_ms, self._committed_ms() - self.wall_ms, hours_ms)
        deadline = self.deadline_ms
        left_ms = None if deadline is None else max(0.0, deadline - self.now_ms)
        rows = (
            Account("evaluations", "evaluations", "--max-evals", *search),
            Account("comparison evaluations", "evaluations", "", *beside),
            Account("device time", "device-hours", "--max-device-hours", *device, device_ms, hour),
            Account("wall clock", "hours", "--max-hours", *wall, hour),
            Account(
                "money", "of money", "--max-cost", *device, cost_ms, hour / price if price else inf
            ),
            Account("deadline", "hours", "--window", 0, 0, left_ms, hour),
        )
        return {account.name: account for account in rows}

    @property
    def wall_ms(self) -> int:
        """Time the run has been open, over all sessions."""
        return self.before_ms + sum(self.sessions_ms)

    def _committed_ms(self, new_ms: int = 0) -> int:
        """The same once all running attempts, and a new one, have used their whole reservations."""
        ends = list(self.sessions_ms)
        for own in self.holds.values():
            ends[own.session] = max(ends[own.session], own.reserved_ms + own.reserved.reserve_ms)
        if ends:
            ends[-1] = max(ends[-1], self.sessions_ms[-1] + new_ms)
        return self.before_ms + (sum(ends) if ends else new_ms)

    @property
    def reserved_ms(self) -> int:
        """Device time that all running attempts may take."""
        return sum(own.reserved.reserve_ms for own in self.holds.values())

    @property
    def free_slot(self) -> int:
        """The lowest slot without a running attempt."""
        taken = {own.reserved.slot for own in self.holds.values()}
        return next(slot for slot in count() if slot not in taken)

    def tick(self, elapsed_ms: int, at_ms: int = 0, *, opens: bool = False) -> "Accounts":
        """The accounts at a later moment; a session may begin. Neither clock runs backwards."""
        sessions_ms, began_ms, now_ms = self.sessions_ms, self.session_began_ms, self.now_ms
        if opens:
            sessions_ms, began_ms = (*sessions_ms, 0), max(now_ms, at_ms)
        if sessions_ms:
            sessions_ms = (*sessions_ms[:-1], max(elapsed_ms, sessions_ms[-1]))
        now_ms = max(now_ms, at_ms, began_ms + elapsed_ms)
        return self._replace(sessions_ms=sessions_ms, session_began_ms=began_ms, now_ms=now_ms)

    def refusal(
        self, reserve_ms: int, *, compares: bool = False, keep: tuple[float, float] = (0.0, 0.0)
    ) -> tuple[Account, float] | None:
        """Why an attempt with this worst case may not start now; None when it may.

        The account without room, and what is needed of it, in its unit. `keep`: device-hours and
        hours that must stay free for other evaluations.
        """
        device_ms, others_ms = reserve_ms + keep[0] * MS_PER_HOUR, keep[1] * MS_PER_HOUR
        needs = {
            "comparison evaluations" if compares else "evaluations": 1.0,
            "device time": device_ms,
            "money": device_ms,
            "wall clock": self._committed_ms(reserve_ms) - self._committed_ms() + others_ms,
            "deadline": reserve_ms + others_ms,
        }
        table = self.table
        for name, needed in needs.items():
            if (account := table[name]).overrun(needed) > 0:
                return account, needed / account.per_unit
        return None

    def reserve(self, reserved: Reserved) -> "Accounts":
        """Set the worst case of an attempt aside. Raises ValueError if a cap forbids it."""
        compares = reserved.comparison is not None
        if refusal := self.refusal(reserved.reserve_ms, compares=compares):
            raise ValueError(f"a reservation beyond the cap on {refusal[0].name}")
        own = Attempt(len(self.sessions_ms) - 1, reserved, reserved_ms=self.sessions_ms[-1])
        return self._replace(holds={**self.holds, reserved.place: own})

    def settle(self, end: Settled) -> "Accounts":
        """Replace the attempt's reservation by what was measured.

        A lost attempt costs its device time but no evaluation. One of an earlier session also
        shows for how long, at least, that session was open.
        """
        holds, sessions_ms = dict(self.holds), list(self.sessions_ms)
        own = holds.pop(end.place)
        if own.session < len(sessions_ms) - 1:
            end_ms = own.reserved_ms + min(end.charged_ms, own.reserved.reserve_ms)
            sessions_ms[own.session] = max(sessions_ms[own.session], end_ms)
        compares = end.comparison is not None
        return self._replace(
            evaluations=self.evaluations + (end.final and not compares),
            comparisons=self.comparisons + (end.final and compares),
            device_ms=self.device_ms + end.charged_ms,
            holds=holds,
            sessions_ms=tuple(sessions_ms),
        )

    def amend(self, plan: Plan) -> "Accounts":
        """The same accounts under another plan. Raises ValueError if a new cap is exceeded."""
        amended, before = self._replace(plan=plan), self.table
        for name, account in amended.table.items():
            if account.cap != before[name].cap and account.overrun(0) > 0:
                raise ValueError(f"more {name} is spent or reserved than it would allow")
        return amended
