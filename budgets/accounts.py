"""Four currencies: evaluations, device time, wall clock and money.

`reserve` sets an attempt's worst case aside before it starts, `settle` replaces it by what was
measured, and `refusal` says what may still start. Device time is whole milliseconds, so sums are
exact; money is device time times a price, so it needs no book of its own.

Wall clock runs by itself. Each session (one process that had the ledger) is committed to the later
of the last moment it was seen and the latest moment an attempt of its may end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import floor, inf

from budgets.terms import Caps

MS_PER_HOUR = 3_600_000

Key = tuple[int, int, int]
"""Generation, candidate, seed."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What an attempt in flight has set aside, and since when in which session."""

    reserve_ms: int
    session: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt may not start."""

    currency: str
    needed: float
    free: float
    unit: str
    flag: str

    def __str__(self) -> str:
        return (
            f"{self.currency}: an attempt must be able to use {self.needed:.4g} {self.unit}, "
            f"{max(self.free, 0):.4g} {self.unit} are free ({self.flag})"
        )


@dataclass(frozen=True, slots=True)
class Accounts:
    """Spent and reserved so far. A value: every operation returns a new one."""

    caps: Caps
    price_per_device_hour: float = 0.0
    evaluations: int = 0  # settled with a final status
    device_ms: int = 0  # spent, on whatever came of it
    lost_ms: int = 0  # of these, on attempts that the infrastructure lost or a person cancelled
    overrun_ms: int = 0  # of these, beyond what was reserved
    holds: Mapping[Key, Hold] = field(default_factory=dict)
    sessions_ms: tuple[int, ...] = ()

    @property
    def reserved_device_ms(self) -> int:
        return sum(hold.reserve_ms for hold in self.holds.values())

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
    def device_hours_free(self) -> float | None:
        """Neither spent nor reserved; None without a cap. The same for the next two."""
        return _free(self.caps.device_hours, self._used_device_hours)

    @property
    def cost_free(self) -> float | None:
        return _free(self.caps.cost, self._used_device_hours * self.price_per_device_hour)

    @property
    def hours_free(self) -> float | None:
        return _free(self.caps.hours, self.committed_wall_ms / MS_PER_HOUR)

    @property
    def hours_overrun(self) -> float:
        """How long the run was open beyond its cap: a suspended machine, a slow start."""
        return max(0.0, self.wall_ms / MS_PER_HOUR - (self.caps.hours or inf))

    @property
    def _used_device_hours(self) -> float:
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
        return replace(self, sessions_ms=(*self.sessions_ms, 0))

    def tick(self, elapsed_ms: int) -> "Accounts":
        """The current session has been open for `elapsed_ms` (never runs backwards)."""
        if not self.sessions_ms or elapsed_ms <= self.sessions_ms[-1]:
            return self
        return replace(self, sessions_ms=(*self.sessions_ms[:-1], elapsed_ms))

    def refusal(self, reserve_ms: int) -> Refusal | None:
        """Why an attempt with this worst case may not start now; None when it may."""
        evaluations_free = self.caps.evaluations - self.evaluations - len(self.holds)
        if evaluations_free < 1:
            return Refusal("evaluations", 1, evaluations_free, "evaluations", "--max-evals")
        hours = reserve_ms / MS_PER_HOUR
        used_ms = self.device_ms + self.reserved_device_ms
        if used_ms + reserve_ms > self.device_cap_ms:
            free = (self.device_cap_ms - used_ms) / MS_PER_HOUR
            if self._cost_cap_ms > self.device_cap_ms:
                return Refusal("device time", hours, free, "device-hours", "--max-device-hours")
            price = self.price_per_device_hour
            return Refusal("money", hours * price, free * price, "of money", "--max-cost")
        wall_cap_ms = _cap_ms(self.caps.hours)
        after = self._hold((-1, -1, -1), reserve_ms).committed_wall_ms
        if after > wall_cap_ms:
            free = hours - (after - wall_cap_ms) / MS_PER_HOUR
            return Refusal("wall clock", hours, free, "hours", "--max-hours")
        return None

    def reserve(self, key: Key, reserve_ms: int) -> "Accounts":
        """Set the worst case of an attempt aside. Raises ValueError if a cap forbids it."""
        if not self.sessions_ms:
            raise ValueError("no session is open to start an attempt")
        if key in self.holds:
            raise ValueError(f"evaluation {key} already holds a reservation")
        if refusal := self.refusal(reserve_ms):
            raise ValueError(f"a reservation beyond a cap: {refusal}")
        return self._hold(key, reserve_ms)

    def _hold(self, key: Key, reserve_ms: int) -> "Accounts":
        hold = Hold(reserve_ms, len(self.sessions_ms) - 1, self.sessions_ms[-1])
        return replace(self, holds={**self.holds, key: hold})

    def settle(self, key: Key, charged_ms: int, *, final: bool) -> "Accounts":
        """Replace a reservation by what was measured. Raises ValueError if there is none.

        An attempt that was lost costs its device time but does not use up an evaluation. One of
        an earlier session also proves how long that session was open at least.
        """
        if key not in self.holds:
            raise ValueError(f"evaluation {key} is settled without a reservation")
        hold = self.holds[key]
        sessions = list(self.sessions_ms)
        if hold.session < len(sessions) - 1:
            end = hold.since_ms + min(charged_ms, hold.reserve_ms)
            sessions[hold.session] = max(sessions[hold.session], end)
        return replace(
            self,
            evaluations=self.evaluations + final,
            device_ms=self.device_ms + charged_ms,
            lost_ms=self.lost_ms + (0 if final else charged_ms),
            overrun_ms=self.overrun_ms + max(0, charged_ms - hold.reserve_ms),
            holds={k: v for k, v in self.holds.items() if k != key},
            sessions_ms=tuple(sessions),
        )


def _free(cap: float | None, used: float) -> float | None:
    return None if cap is None else max(0.0, cap - used)


def _cap_ms(hours: float | None) -> float:
    return inf if hours is None else floor(hours * MS_PER_HOUR)
