"""How small a true paired gain a number of pairs can show, by a one-sided t test."""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import erfc, exp, lgamma, log, sqrt

from budgets.statistics.students_t import one_sided_limit

REACH = 6.0
"""Standard deviations beyond which a tail is nothing: 1e-9 of a normal distribution."""

INTERVALS = 64
"""Of Simpson's rule on each smooth part: a probability is off by less than 2e-6."""


def power_of(gain: float, sd: float, n: int, level: float, at_least: float = 0.0) -> float:
    """With what probability n pairs show a true mean gain; `sd` is of one pair, all in one unit.

    Shown is a gain whose lower confidence bound, one-sided at `level`, is above 0 and whose
    observed mean is no smaller than `at_least`. Raises ValueError below two pairs, or unless
    0 < level < 1/2.
    """
    return _shown(gain, sd, n, _limit(n, level), at_least)


@lru_cache(maxsize=1024)  # it takes 10 ms, and a report asks for the same ones again and again
def detectable(sd: float, n: int, level: float, power: float = 0.8, at_least: float = 0.0) -> float:
    """The smallest true mean gain that is shown with probability `power`, by bisection.

    To five digits, in the unit of `sd`. What is shown is what `power_of` says, whose errors are
    this one's too; and ValueError unless level < power <= 0.999.
    """
    limit = _limit(n, level)
    if not level < power <= 0.999:
        raise ValueError(f"expected a power above {level} and at most 0.999, got {power}")
    if sd == 0:
        return max(0.0, at_least)
    low, high = 0.0, max(at_least, sd)
    while _shown(high, sd, n, limit, at_least) < power:
        low, high = high, 2 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        enough = _shown(middle, sd, n, limit, at_least) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _limit(n: int, level: float) -> float:
    if n < 2 or not 0 < level < 0.5:
        raise ValueError(
            f"a one-sided t test needs 2 pairs and a level below 1/2, got {n}, {level}"
        )
    return one_sided_limit(level, n - 1)


def _shown(gain: float, sd: float, n: int, limit: float, at_least: float) -> float:
    """P(mean >= max(t s / sqrt(n), at_least)), integrated over s = u sd, u = chi(n-1) / sqrt(n-1).

    Without `at_least` this is a tail of the noncentral t: D. B. Owen, "A survey of properties and
    applications of the noncentral t-distribution", Technometrics 10 (1968) 445-478.
    """
    if sd == 0:
        return float(gain > 0 and gain >= at_least)
    shift, least = gain * sqrt(n) / sd, at_least * sqrt(n) / sd
    density = _spread(n - 1)

    def shown(u: float) -> float:
        return density(u) * _above(max(limit * u, least) - shift)

    width = REACH / sqrt(2 * (n - 1))
    low, high = max(0.0, 1 - width), min(1 + width, (shift + REACH) / limit)
    if high <= low:
        return 0.0
    bends = (least / limit, (shift - REACH) / limit)
    edges = sorted({low, high, *(bend for bend in bends if low < bend < high)})
    return min(1.0, sum(_simpson(shown, a, b) for a, b in pairwise(edges)))


def _spread(freedom: int) -> Callable[[float], float]:
    """The density of chi(f) / sqrt(f): by what factor a sample's sd differs from the true one."""
    half = freedom / 2
    constant = log(2) + half * log(half) - lgamma(half)

    def density(u: float) -> float:
        if u == 0:
            return exp(constant) if freedom == 1 else 0.0
        return exp(constant + (freedom - 1) * log(u) - half * u * u)

    return density


def _above(z: float) -> float:
    """P(Z > z) of a standard normal."""
    return erfc(z / sqrt(2)) / 2


def _simpson(f: Callable[[float], float], low: float, high: float) -> float:
    step = (high - low) / INTERVALS
    odd = sum(f(low + k * step) for k in range(1, INTERVALS, 2))
    even = sum(f(low + k * step) for k in range(2, INTERVALS, 2))
    return step / 3 * (f(low) + 4 * odd + 2 * even + f(high))
