"""From numbers to places on an axis: its range, and its ticks with their labels.

Ticks are at 1, 2 or 5 times a power of ten. Their labels keep the digits that differ, and no more.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from orchestrator.charts.chart import Axis
from orchestrator.charts.lettering import MINUS, TIMES, shown

MARGIN = 0.04
"""Share of the range that is left free at either end, where no limit was given."""

HUGE = 1e300
"""Further out no difference is a number any more."""

TINY = 1e-200
"""Further in there is none either."""

NARROW = 1e-12
"""A range this narrow, relative to its numbers, is one number written twice."""

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Range:
    """What an axis reaches over: `low` is less than `high`, and above 0 where it is logarithmic."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Where `value` is: 0 at the low end, 1 at the high end. -inf: it has no logarithm."""
        if not self.is_log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return -math.inf
        low, high = math.log10(self.low), math.log10(self.high)
        return (math.log10(value) - low) / (high - low)

    def holds(self, value: float) -> bool:
        return -1e-9 <= self.share(value) <= 1 + 1e-9


def range_of(axis: Axis, values: Iterable[float | None]) -> Range:
    """The range of an axis over `values`: those that are no finite number are passed over."""
    if axis.categories:
        return Range(-0.5, len(axis.categories) - 0.5)
    is_log = axis.scale == "log"
    numbers = [value for value in values if is_drawable(value, is_log=is_log)]
    if axis.has_zero and not is_log:
        numbers.append(0.0)
    low, high = _limits(axis, numbers, is_log)
    if is_log:
        first, last = (max(-299.0, min(299.0, math.log10(end))) for end in (low, high))
        ends = _spread((first, last), axis, 0.5)
        low, high = (10 ** max(-300.0, min(300.0, end)) for end in ends)
        return Range(low, high, is_log=True)
    own = 0.5 if axis.is_whole or low == 0 else abs(low) * 0.05
    ends = _spread((low, high), axis, own)
    # What begins at nothing, begins at the edge.
    from_zero = 0.0 if low == 0 < high else ends[0]
    return Range(from_zero, 0.0 if high == 0 > low else ends[1])


def is_drawable(value: float | None, *, is_log: bool = False) -> TypeGuard[float]:
    """Whether `value` has a place on such an axis."""
    return value is not None and math.isfinite(value) and (value > 0 or not is_log)


def _limits(axis: Axis, numbers: Sequence[float], is_log: bool) -> tuple[float, float]:
    """Those of the marks, or the given ones, in order."""
    given_low = axis.low if is_drawable(axis.low, is_log=is_log) else None
    given_high = axis.high if is_drawable(axis.high, is_log=is_log) else None
    given = [end for end in (given_low, given_high) if end is not None]
    among = numbers or given or ([1.0, 10.0] if is_log else [0.0, 1.0])
    low = min(among) if given_low is None else given_low
    high = max(among) if given_high is None else given_high
    low, high = max(-HUGE, min(HUGE, low)), max(-HUGE, min(HUGE, high))
    if low <= high:
        return low, high
    return (high, high) if given_low is None else (low, low)


def _spread(between: tuple[float, float], axis: Axis, own: float) -> tuple[float, float]:
    """Both ends with their margins; `own` to either side of a range that has no width."""
    low, high = between
    span = high - low
    if span <= max(TINY, NARROW * max(abs(low), abs(high))):
        own = max(own, TINY, abs(low) * NARROW * 10)
        if axis.low is not None and axis.high is None:
            return low, low + 2 * own
        if axis.high is not None and axis.low is None:
            return high - 2 * own, high
        return low - own, high + own
    below = 0.0 if axis.low is not None else MARGIN * span
    above = 0.0 if axis.high is not None else MARGIN * span
    return low - below, high + above


@dataclass(frozen=True)
class Tick:
    value: float
    label: str


def ticks(axis: Axis, reach: Range, most: int) -> tuple[Tick, ...]:
    """At most `most` ticks (3, where fewer would say nothing of a scale), from low to high.

    Those that an axis names itself are all of them.
    """
    if axis.ticks:
        return tuple(Tick(value, shown(name)) for value, name in axis.ticks if reach.holds(value))
    most = max(most, 3)
    if reach.is_log:
        return _log_ticks(reach, most)
    return _linear_ticks(reach, most, is_whole=axis.is_whole)


def _linear_ticks(reach: Range, most: int, *, is_whole: bool = False) -> tuple[Tick, ...]:
    found: list[float] = []
    power = 0
    for mantissa, power in _steps((reach.high - reach.low) / (most + 1), is_whole=is_whole):
        found = [own for own in _multiples(reach, mantissa, power) if reach.holds(own)]
        if len(found) <= most:
            break
    return tuple(
        Tick(value, label) for value, label in zip(found, _linear_labels(found, power), strict=True)
    )


def _steps(least: float, *, is_whole: bool) -> Iterator[tuple[int, int]]:
    """Steps of 1, 2 or 5 times a power of ten, growing from about `least`."""
    power = max(math.floor(math.log10(least)), -307)
    if is_whole:
        power = max(power, 0)
    while True:
        yield from ((mantissa, power) for mantissa in (1, 2, 5))
        power += 1


def _multiples(reach: Range, mantissa: int, power: int) -> Iterator[float]:
    """Multiples of a step within the range, each the closest number to what it stands for."""
    step = mantissa * 10.0**power
    first, last = math.ceil(reach.low / step - 1e-9), math.floor(reach.high / step + 1e-9)
    for count in range(first, min(last, first + 1000) + 1):
        yield count * mantissa * 10.0**power if power >= 0 else count * mantissa / 10.0**-power


def _linear_labels(values: Sequence[float], power: int) -> list[str]:
    largest = max((abs(value) for value in values), default=0.0)
    if largest == 0:
        return [_signed("0") for _ in values]
    order = math.floor(math.log10(largest))
    if -4 <= order < 7 or (order < 16 and power < order - 6):
        return [_signed(f"{value:,.{max(0, -power)}f}") for value in values]
    decimals = max(0, order - power)
    return [
        "0" if value == 0 else _signed(f"{_scaled(value, order):.{decimals}f}{_ten(order)}")
        for value in values
    ]


def _scaled(value: float, order: int) -> float:
    return value / 10.0**order if order > -300 else value * 1e300 / 10.0 ** (order + 300)


def _ten(order: int) -> str:
    return f"{TIMES}10{str(order).translate(_RAISED)}"


def _signed(text: str) -> str:
    return text.replace("-", MINUS) if text.strip("-0.,") else text.lstrip("-")


def _log_ticks(reach: Range, most: int) -> tuple[Tick, ...]:
    low, high = math.log10(reach.low), math.log10(reach.high)
    decades = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    values = _fine(reach) if high - low < 4 else []
    if not 2 < len(values) <= most:
        stride = math.ceil(len(decades) / most) or 1
        values = [10.0**decade for decade in decades if decade % stride == 0]
    if len(values) < 2:
        return _linear_ticks(reach, most)
    return tuple(map(Tick, values, _log_labels(values)))


def _fine(reach: Range) -> list[float]:
    """1, 2 and 5 times each power of ten within the range."""
    orders = range(math.floor(math.log10(reach.low)), math.floor(math.log10(reach.high)) + 1)
    values = [mantissa * 10.0**order for order in orders for mantissa in (1, 2, 5)]
    return [value for value in values if reach.holds(value)]


def _log_labels(values: Sequence[float]) -> list[str]:
    """Plain as long as all of them are short; else as powers of ten."""
    if min(values) >= 0.9e-3 and max(values) < 1e6:
        return [f"{value:,.15g}" for value in values]
    return [_power_label(value) for value in values]


def _power_label(value: float) -> str:
    order = math.floor(math.log10(value) + 1e-9)
    mantissa = round(_scaled(value, order))
    ten = _ten(order)
    return ten.removeprefix(TIMES) if mantissa == 1 else f"{mantissa}{ten}"
