"""How many evaluations may be in flight, decided from those that have ended. Pure.

The number climbs, from 2, while more workers do more, and returns to what did most:

- increase: the last evaluations took stably long, and nothing says that more would do less.
- throttle: fewer workers did more together than those now, or may (fewer were never tried).
- hold: otherwise; so also before there are enough evaluations to decide.

What did less is tried again only after `patience` decisions, each time after twice as many: on a
machine that stays as it is, the number comes to rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import floor, inf, sqrt
from typing import Literal

from orchestrator.capacity.fitted import Fit
from orchestrator.capacity.least_squares import fit
from orchestrator.capacity.terms import Backpressure
from orchestrator.capacity.usl import Regime
from orchestrator.capacity.windows import Measured, Observation, is_stable, measured, merged

Action = Literal["increase", "hold", "throttle"]

LIKELY, SURE = 2.0, 3.0  # standard errors: to go on upwards; to go back
NOTABLY_FEWER = 0.75  # of the workers now: what they gain is compared with these


@dataclass(frozen=True, slots=True)
class Pressure:
    """What is decided, and on what grounds."""

    action: Action
    regime: Regime | None  # None: nothing is known yet
    p_star: float | None  # the optimum, where it could be told at last and is finite
    throughput: float | None  # evaluations an hour, as last measured at this number of workers
    allowed: int  # evaluations in flight from now on

    def signals(self) -> dict[str, str | float | None]:
        """As files have them."""
        return {
            "bp_action": self.action,
            "bp_regime": self.regime,
            "bp_p_star": self.p_star,
            "bp_throughput": self.throughput,
        }


@dataclass(frozen=True, slots=True)
class Blocked:
    """A number of workers that did less than fewer."""

    until: int  # the decision from which on it may be tried again
    patience: int  # how long that was


@dataclass(frozen=True, slots=True)
class Control:
    """What the evaluations so far amount to. A value: `advanced` returns the next one."""

    terms: Backpressure
    devices: int
    pressure: Pressure
    since_ms: float = 0.0  # when `allowed` was set: what began earlier says nothing of it
    window: tuple[Observation, ...] = ()
    levels: Mapping[int, Measured] = field(default_factory=dict)
    blocked: Mapping[int, Blocked] = field(default_factory=dict)
    decisions: int = 0

    def advanced(self, seen: Observation) -> "Control":
        """After one more evaluation."""
        allowed = self.pressure.allowed
        is_of_now = seen.began_ms >= self.since_ms and abs(seen.workers - allowed) < 0.5
        window = (*self.window, seen) if is_of_now and seen.seconds > 0 else self.window
        if len(window) < max(self.terms.window, allowed):
            return replace(self, window=window, pressure=replace(self.pressure, action="hold"))
        return _decided(replace(self, window=window), seen.ended_ms)


def begun(terms: Backpressure, devices: int) -> Control:
    """Before the first evaluation."""
    return Control(terms, devices, Pressure("hold", None, None, None, terms.first(devices)))


def _decided(control: Control, now_ms: float) -> Control:
    """The window is full: what it measured goes into the table, and decides."""
    own = control.pressure.allowed
    control = replace(control, decisions=control.decisions + 1)
    levels = {n: level for n, level in control.levels.items() if not _is_forgotten(control, n)}
    levels[own] = merged(levels.get(own), measured(control.window, own))
    control = replace(control, levels=levels)
    found = fit([known.level for known in levels.values()])
    wanted, is_worse = _wanted(control, found)
    return replace(
        control,
        blocked={**control.blocked, **_newly_blocked(control, is_worse=is_worse)},
        pressure=_pressure(control, found, wanted, is_worse=is_worse),
        window=(),
        since_ms=now_ms if wanted != own else control.since_ms,
    )


def _newly_blocked(control: Control, *, is_worse: bool) -> dict[int, Blocked]:
    """The number now if fewer did more, and larger ones that were seen to do less than this."""
    own, levels, blocked = control.pressure.allowed, control.levels, control.blocked
    worse = [n for n in levels if n > own and n not in blocked and _does_more(control, own, n)]
    found = {}
    for workers in [*worse, *([own] if is_worse else [])]:
        before = blocked.get(workers)
        patience = control.terms.patience if before is None else 2 * before.patience
        found[workers] = Blocked(control.decisions + patience, patience)
    return found


def _is_forgotten(control: Control, workers: int) -> bool:
    """Whether it once did less, so long ago that it may be tried again."""
    return workers in control.blocked and _is_free(control, workers)


def _pressure(control: Control, found: Fit, wanted: int, *, is_worse: bool) -> Pressure:
    own = control.pressure.allowed
    optimum = control.pressure.p_star if found.optimum is None else found.optimum
    return Pressure(
        action="increase" if wanted > own else "throttle" if wanted < own else "hold",
        regime="retrograde" if is_worse else found.regime(own),
        p_star=None if optimum is None or optimum == inf else optimum,
        throughput=control.levels[own].throughput,
        allowed=wanted,
    )


def _wanted(control: Control, found: Fit) -> tuple[int, bool]:
    """The number of workers from now on; whether that now did less than fewer."""
    own, levels = control.pressure.allowed, control.levels
    fewer = [n for n in levels if n < own and _does_more(control, n, own, SURE)]
    if fewer:
        return max(fewer, key=lambda n: (levels[n].throughput, -n)), True
    more = [n for n in levels if n > own and _does_more(control, n, own) and _is_free(control, n)]
    if more:
        return max(more, key=lambda n: (levels[n].throughput, -n)), False
    least, most = control.terms.bounds(control.devices)
    upwards = _next_up(control, found)
    if upwards > own:
        return upwards, False
    goes_no_higher = own == most or len(levels) > 1  # more cannot be, or did not do more
    if goes_no_higher and own == min(levels) and own > least:  # perhaps fewer do
        return own - 1, False
    return own, False


def _does_more(control: Control, one: int, other: int, errors: float = LIKELY) -> bool:
    """By more than the tolerance, and than so many standard errors of the difference."""
    a, b = control.levels[one], control.levels[other]
    margin = max(control.terms.tolerance, errors * sqrt(a.noise**2 + b.noise**2))
    return a.throughput > b.throughput * (1 + margin)


def _is_free(control: Control, workers: int) -> bool:
    blocked = control.blocked.get(workers)
    return blocked is None or control.decisions >= blocked.until


def _next_up(control: Control, found: Fit) -> int:
    """The next larger number to try; the one now where there is none.

    Twice as many while that seems to be linear, and else a quarter more; first of all the optimum,
    where the law has one on the way; and halfway to what did less.
    """
    own, levels = control.pressure.allowed, control.levels
    _, most = control.terms.bounds(control.devices)
    fewer = [n for n in levels if n < own]
    if not is_stable(control.window, control.terms.tolerance):
        return own
    if fewer and not _does_more(control, own, _compared(fewer, own, found)):
        return own
    is_linear = not fewer or found.regime(own) == "linear"
    wanted = min(most, 2 * own if is_linear else own + max(1, own // 4))
    if found.optimum is not None and found.optimum < wanted:
        wanted = min(most, max(own + 1, floor(found.optimum)))
    refused = [n for n in levels if n > own and n in control.blocked]
    if refused:
        wanted = min(wanted, (own + min(refused)) // 2)
    return own if wanted in levels else max(own, wanted)


def _compared(fewer: list[int], own: int, found: Fit) -> int:
    """The fewer workers that more must have gained against: notably fewer, for a gain to show.

    Beyond the optimum, if the law has one, the next fewer: the last step itself must have gained.
    """
    notably = [n for n in fewer if n <= NOTABLY_FEWER * own]
    is_beyond = found.optimum is not None and own >= found.optimum
    return max(fewer) if is_beyond or not notably else max(notably)
