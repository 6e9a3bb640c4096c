"""How well a few samples know the standard deviation they come from, by chi-square, exactly."""

from math import erfc, exp, fsum, inf, lgamma, log, sqrt


def share_above(x: float, freedom: int) -> float:
    """P(X > x) of chi-square with `freedom` whole degrees of freedom, for x >= 0.

    The finite sums of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.4.4 and
    26.4.5: Q(a + 1, y) = Q(a, y) + y^a exp(-y) / Gamma(a + 1) with y = x / 2, from a = 1/2 or 0.
    """
    if x == 0:
        return 1.0
    y, odd = x / 2, freedom % 2
    powers = (k + odd / 2 for k in range(freedom // 2))
    total = fsum(exp(a * log(y) - y - lgamma(a + 1)) for a in powers)
    return total + erfc(sqrt(y)) if odd else total


def limit_above(share: float, freedom: int) -> float:
    """The x that chi-square exceeds with probability `share`, 0 < share < 1, by bisection."""
    low, high = 0.0, float(freedom)
    while share_above(high, freedom) > share:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if share_above(middle, freedom) > share else (low, middle)
    return high


def sd_interval(sd: float, n: int, level: float = 0.05) -> tuple[float, float]:
    """Where the true standard deviation lies, if n normal samples have the standard deviation `sd`.

    Two-sided: the interval misses it with probability `level`. sd sqrt((n - 1) / x) with x the
    chi-square exceeded with probability level / 2, and 1 - level / 2. One sample says nothing.
    """
    if n < 2:
        return 0.0, inf
    ends = (limit_above(share, n - 1) for share in (level / 2, 1 - level / 2))
    low, high = (sd * sqrt((n - 1) / x) for x in ends)
    return low, high
