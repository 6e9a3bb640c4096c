"""Student's t distribution for whole degrees of freedom, exactly, without a numeric library."""

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt, tan


def share_within(t: float, freedom: int) -> float:
    """P(|T| <= t) of Student's t with `freedom` degrees of freedom, for t >= 0.

    The finite sums of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and
    26.7.4.
    """
    return _share(atan(t / sqrt(freedom)), freedom)


def _share(theta: float, freedom: int) -> float:
    square = cos(theta) ** 2
    odd = freedom % 2
    term = cos(theta) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom, 2):  # each term from the one before
        term *= square * (k - 1) / k
        total += term
    if odd:
        return 2 / pi * (theta + sin(theta) * total)
    return sin(theta) * total


@lru_cache(maxsize=1024)  # a report asks for the same few hundreds of times
def two_sided_limit(level: float, freedom: int) -> float:
    """The t that |T| exceeds with probability `level`: the two-sided quantile, by bisection."""
    low, high = 0.0, pi / 2
    for _ in range(60):  # halves the angle's interval down to the last bit
        middle = (low + high) / 2
        if _share(middle, freedom) < 1 - level:
            low = middle
        else:
            high = middle
    return sqrt(freedom) * tan(high)


def one_sided_limit(level: float, freedom: int) -> float:
    """The t that T exceeds with probability `level`, 0 < level < 1; below 0 above 1/2."""
    if level > 0.5:
        return -one_sided_limit(1 - level, freedom)
    return two_sided_limit(2 * level, freedom)
