"""Five currencies and a deadline: what is reserved, settled and left of each.

The currencies are evaluations of the search, comparison evaluations, device time, wall clock and
money; the deadline is on the calendar.

`reserve` sets an attempt's worst case aside before it starts, `settle` replaces it by what was
measured, and `refusal` says what may still start. Device time is whole milliseconds, so sums are
exact; money is device time times a price, so it needs no book of its own.

Wall clock runs by itself. Each session (one process that had the ledger) is committed to the later
of the last moment it was seen and the latest moment one of its attempts may end. The calendar is
read from the clock on the wall, and never runs backwards here, whatever that clock does.
"""

from collections.abc import Mapping
from itertools import count
from math import floor, inf
from typing import NamedTuple

from budgets.formatting import against
from budgets.plan import Caps

MS_PER_HOUR = 3_600_000

Key = tuple[str | int | None, ...]
"""Panel or None, generation, candidate, seed."""


class Hold(NamedTuple):
    """What an attempt in flight has set aside, and since when in which session."""

    reserve_ms: int
    session: int
    since_ms: int
    apart: bool = False  # not one of the search's evaluations
    slot: int | None = None


class Refusal(NamedTuple):
    """Why an attempt may not start."""

    currency: str
    needed: float
    free: float
    unit: str
    flag: str

    def __str__(self) -> str:
        needed, free = against(self.needed, max(self.free, 0), self.unit)
        return (
            f"{self.currency}: an attempt must be able to use {needed}, {free} are free "
            f"({self.flag})"
        )


class Calendar(NamedTuple):
    """The time of day, in milliseconds since 1970, and when the last evaluation must be over."""

    deadline_ms: float
    now_ms: int = 0
    session_ms: int = 0  # when the current session began

    def open_session(self, at_ms: int) -> "Calendar":
        now_ms = max(self.now_ms, at_ms)
        return self._replace(now_ms=now_ms, session_ms=now_ms)

    def tick(self, at_ms: int, elapsed_ms: int) -> "Calendar":
        """Later by the wall's clock, or by the session's own: a clock set back gains no time."""
        return self._replace(now_ms=max(self.now_ms, at_ms, self.session_ms + elapsed_ms))


class Accounts(NamedTuple):
    """Spent and reserved so far. A value: every operation returns a new one."""

    caps: Caps
    price_per_device_hour: float = 0.0
    evaluations: int = 0  # of the search, settled for good
    apart: int = 0  # evaluations beside the search, likewise
    apart_cap: int = 0  # how many of those are planned
    apart_held: int = 0  # of the holds, those for one of these
    device_ms: int = 0  # spent, on whatever came of it
    lost_ms: int = 0  # of these, on attempts that the infrastructure lost or a person cancelled
    overrun_ms: int = 0  # of these, beyond what was reserved
    reserved_device_ms: int = 0  # by all holds together
    holds: Mapping[Key, Hold] = {}
    sessions_ms: tuple[int, ...] = ()
    calendar: Calendar | None = None  # when there is a deadline

    @property
    def wall_ms(self) -> int:
        """Time the run has been open, over all its sessions."""
        return sum(self.sessions_ms)

    @property
    def committed_wall_ms(self) -> int:
        """... and may still be open for the attempts in flight."""
        ends = list(self.sessions_ms)
        for hold in self.holds.values():
            ends[hold.session] = max(ends[hold.session], hold.since_ms + hold.reserve_ms)
        return sum(ends)

    @property
    def cost(self) -> float:
        return self.device_ms / MS_PER_HOUR * self.price_per_device_hour

    @property
    def evaluations_free(self) -> int:
        """Neither spent nor reserved. The same for the next five; None without a cap."""
        return self.caps.evaluations - self.evaluations - len(self.holds) + self.apart_held

    @property
    def apart_free(self) -> int:
        return self.apart_cap - self.apart - self.apart_held

    @property
    def device_hours_free(self) -> float | None:
        return _free(self.caps.device_hours, self.used_device_hours)

    @property
    def cost_free(self) -> float | None:
        return _free(self.caps.cost, self.used_device_hours * self.price_per_device_hour)

    @property
    def hours_free(self) -> float | None:
        return _free(self.caps.hours, self.committed_wall_ms / MS_PER_HOUR)

    @property
    def window_hours_free(self) -> float | None:
        if self.calendar is None:
            return None
        return max(0.0, (self.calendar.deadline_ms - self.calendar.now_ms) / MS_PER_HOUR)

    @property
    def hours_overrun(self) -> float:
        """How long the run was open beyond its cap: a suspended machine, a slow start."""
        return max(0.0, self.wall_ms / MS_PER_HOUR - (self.caps.hours or inf))

    @property
    def used_device_hours(self) -> float:
        """With what is reserved."""
        return (self.device_ms + self.reserved_device_ms) / MS_PER_HOUR

    @property
    def device_cap_ms(self) -> float:
        """The tighter of the caps on device time and on money; infinite without one."""
        return min(_cap_ms(self.caps.device_hours), self._cost_cap_ms)

    @property
    def _cost_cap_ms(self) -> float:
        return _cap_ms(
            None if self.caps.cost is None else self.caps.cost / self.price_per_device_hour
        )

    def open_session(self) -> "Accounts":
        return self._replace(sessions_ms=(*self.sessions_ms, 0))

    def tick(self, elapsed_ms: int) -> "Accounts":
        """The current session has been open for `elapsed_ms` (never runs backwards)."""
        sessions_ms = self._sessions_at(elapsed_ms)
        return self if sessions_ms is self.sessions_ms else self._replace(sessions_ms=sessions_ms)

    def _sessions_at(self, elapsed_ms: int) -> tuple[int, ...]:
        sessions_ms = self.sessions_ms
        if not sessions_ms or elapsed_ms <= sessions_ms[-1]:
            return sessions_ms
        return (*sessions_ms[:-1], elapsed_ms)

    def refusal(
        self, reserve_ms: int, *, apart: bool = False, aside: tuple[float, float] = (0.0, 0.0)
    ) -> Refusal | None:
        """Why an attempt with this worst case may not start now; None when it may.

        `aside`: device-hours and hours that it must leave to others.
        """
        caps = self.caps
        if (free := self.apart_free if apart else self.evaluations_free) < 1:
            name = "comparison evaluations" if apart else "evaluations"
            return Refusal(name, 1, free, "evaluations", "the plan" if apart else "--max-evals")
        if caps.device_hours is not None or caps.cost is not None:
            used_ms = self.device_ms + self.reserved_device_ms + aside[0] * MS_PER_HOUR
            if used_ms + reserve_ms > self.device_cap_ms:
                return self._device_refusal(reserve_ms, self.device_cap_ms - used_ms)
        return self._refusal_of_time(reserve_ms, aside[1])

    def _refusal_of_time(self, reserve_ms: int, aside_hours: float) -> Refusal | None:
        hours = reserve_ms / MS_PER_HOUR
        if self.caps.hours is not None:
            over = self._wall_overrun_ms(reserve_ms) / MS_PER_HOUR + aside_hours
            if over > 0:
                return Refusal("wall clock", hours, hours - over, "hours", "--max-hours")
        until = self.window_hours_free
        if until is not None and hours > (until := until - aside_hours):
            return Refusal("deadline", hours, until, "hours", "--window")
        return None

    def _device_refusal(self, reserve_ms: int, free_ms: float) -> Refusal:
        hours, free_hours = reserve_ms / MS_PER_HOUR, free_ms / MS_PER_HOUR
        if self._cost_cap_ms > self.device_cap_ms:
            flag = "--max-device-hours"
            return Refusal("device time", hours, free_hours, "device-hours", flag)
        price = self.price_per_device_hour
        return Refusal("money", hours * price, free_hours * price, "of money", "--max-cost")

    def _wall_overrun_ms(self, reserve_ms: int) -> float:
        """How far an attempt's worst case would lead beyond the cap on wall clock."""
        hold = Hold(reserve_ms, len(self.sessions_ms) - 1, self.sessions_ms[-1])
        held = self._hold((), hold, self.sessions_ms)
        return held.committed_wall_ms - _cap_ms(self.caps.hours)

    @property
    def free_slot(self) -> int:
        """The lowest that no attempt in flight is in."""
        taken = {hold.slot for hold in self.holds.values()}
        return next(slot for slot in count() if slot not in taken)

    def reserve(
        self,
        key: Key,
        reserve_ms: int,
        elapsed_ms: int = 0,
        *,
        apart: bool = False,
        slot: int | None = None,
    ) -> "Accounts":
        """Set the worst case of an attempt aside. Raises ValueError if a cap forbids it."""
        if not self.sessions_ms:
            raise ValueError("no session is open to start an attempt")
        if key in self.holds:
            raise ValueError(f"evaluation {key} already holds a reservation")
        now = self if self.caps.hours is None else self.tick(elapsed_ms)
        if refusal := now.refusal(reserve_ms, apart=apart):
            raise ValueError(f"a reservation beyond a cap: {refusal}")
        sessions_ms = self._sessions_at(elapsed_ms)
        hold = Hold(reserve_ms, len(sessions_ms) - 1, sessions_ms[-1], apart, slot)
        return self._hold(key, hold, sessions_ms)

    def _hold(self, key: Key, hold: Hold, sessions_ms: tuple[int, ...]) -> "Accounts":
        return self._booked(
            {**self.holds, key: hold},
            sessions_ms,
            reserved_ms=hold.reserve_ms,
            apart_held=int(hold.apart),
        )

    def _booked(  # noqa: PLR0913 - one a book
        self,
        holds: Mapping[Key, Hold],
        sessions_ms: tuple[int, ...],
        *,
        reserved_ms: int,
        apart_held: int,
        evaluations: int = 0,
        apart: int = 0,
        device_ms: int = 0,
        lost_ms: int = 0,
        overrun_ms: int = 0,
    ) -> "Accounts":
        """Other holds, and so much more of the rest (`_replace` is three times as slow)."""
        return Accounts(
            self.caps,
            self.price_per_device_hour,
            self.evaluations + evaluations,
            self.apart + apart,
            self.apart_cap,
            self.apart_held + apart_held,
            self.device_ms + device_ms,
            self.lost_ms + lost_ms,
            self.overrun_ms + overrun_ms,
            self.reserved_device_ms + reserved_ms,
            holds,
            sessions_ms,
            self.calendar,
        )

    def settle(self, key: Key, charged_ms: int, *, final: bool, elapsed_ms: int = 0) -> "Accounts":
        """Replace a reservation by what was measured. Raises ValueError if there is none.

        An attempt that was lost costs its device time but does not use up an evaluation. One of
        an earlier session also proves how long that session was open at least.
        """
        holds = dict(self.holds)
        hold = holds.pop(key, None)
        if hold is None:
            raise ValueError(f"evaluation {key} is settled without a reservation")
        sessions_ms = self._sessions_at(elapsed_ms)
        if hold.session < len(sessions_ms) - 1:
            end = hold.since_ms + min(charged_ms, hold.reserve_ms)
            at = hold.session
            sessions_ms = (*sessions_ms[:at], max(sessions_ms[at], end), *sessions_ms[at + 1 :])
        return self._booked(
            holds,
            sessions_ms,
            reserved_ms=-hold.reserve_ms,
            apart_held=-hold.apart,
            evaluations=final and not hold.apart,
            apart=final and hold.apart,
            device_ms=charged_ms,
            lost_ms=0 if final else charged_ms,
            overrun_ms=max(0, charged_ms - hold.reserve_ms),
        )

    def amend(self, caps: Caps, calendar: Calendar | None) -> "Accounts":
        """The same books under other caps. Raises ValueError if a new one is exceeded."""
        amended, before = self._replace(caps=caps, calendar=calendar), self.caps
        used_ms = self.device_ms + self.reserved_device_ms
        exceeded = {
            "evaluations": caps.evaluations != before.evaluations and amended.evaluations_free < 0,
            "device time": caps.device_hours != before.device_hours
            and used_ms > _cap_ms(caps.device_hours),
            "money": caps.cost != before.cost and used_ms > amended._cost_cap_ms,
            "wall clock": caps.hours != before.hours
            and self.committed_wall_ms > _cap_ms(caps.hours),
        }
        if names := [name for name, is_exceeded in exceeded.items() if is_exceeded]:
            raise ValueError(f"more {' and '.join(names)} is spent or reserved than it would allow")
        return amended


def _free(cap: float | None, used: float) -> float | None:
    return None if cap is None else max(0.0, cap - used)


def _cap_ms(hours: float | None) -> float:
    return inf if hours is None else floor(hours * MS_PER_HOUR)
