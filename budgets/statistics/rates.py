"""How often something happens, from how often it has: binomial counts, exactly."""

from collections.abc import Callable
from math import exp, fsum, lgamma, log, log1p


def at_most(count: int, total: int, rate: float) -> float:
    """P(X <= count) of X events in `total` trials, each with probability `rate`."""
    if count < 0:
        return 0.0
    if count >= total or rate <= 0:
        return 1.0
    if rate >= 1:
        return 0.0
    odds, never = log(rate) - log1p(-rate), total * log1p(-rate)
    return fsum(exp(never + _log_ways(k, total) + k * odds) for k in range(count + 1))


def at_least(count: int, total: int, rate: float) -> float:
    """P(X >= count), as in `at_most`: of the other outcomes, at most the rest."""
    return at_most(total - count, total, 1 - rate)


def _log_ways(count: int, total: int) -> float:
    """log of "total choose count"."""
    return lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)


def lowest_rate(count: int, total: int, level: float) -> float:
    """The true rate is lower with probability `level` at most, if `count` of `total` happened.

    One-sided, exact: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits",
    Biometrika 26 (1934) 404-413.
    """
    if count == 0:
        return 0.0
    return _crossing(lambda rate: at_least(count, total, rate) > level)


def highest_rate(count: int, total: int, level: float) -> float:
    """The true rate is higher with probability `level` at most: as `lowest_rate`."""
    if count == total:
        return 1.0
    return _crossing(lambda rate: at_most(count, total, rate) <= level)


def rate_interval(count: int, total: int, level: float = 0.05) -> tuple[float, float]:
    """Where the true rate lies, missed with probability `level` at most; of no trials: anywhere."""
    return lowest_rate(count, total, level / 2), highest_rate(count, total, level / 2)


def _crossing(is_above: Callable[[float], bool]) -> float:
    """The least rate that is above, of those that a condition divides, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return high
