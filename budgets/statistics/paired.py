"""Paired differences: how large they are, whether that is chance, how many it takes to tell."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from budgets.statistics.students_t import share_within, two_sided_limit


def paired(differences: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Mean, its standard error sd / sqrt(n), and t = mean / error; None where undefined.

    The first two need two differences; t needs an error above 0.
    """
    if len(differences) < 2:
        return None, None, None
    mean = fmean(differences)
    error = stdev(differences) / sqrt(len(differences))
    return mean, error, mean / error if error else None


def chance(differences: Sequence[float]) -> float:
    """With what probability no effect at all gives so large a |t|, by Student's t.

    Differences that do not spread at all are sure unless they are 0; fewer than two say nothing.
    """
    mean, _, t = paired(differences)
    if t is None:
        return 0.0 if mean else 1.0
    return max(0.0, 1.0 - share_within(abs(t), len(differences) - 1))


def discoveries(chances: Sequence[float], rate: float) -> int:
    """How many of several findings, the least by chance first, may be believed together.

    Of those, the share `rate` at most is expected to be chance: Y. Benjamini and Y. Hochberg,
    "Controlling the false discovery rate", J. Royal Statistical Society B 57 (1995) 289-300.
    """
    ordered = sorted(chances)
    fits = [k for k, p in enumerate(ordered, 1) if p <= rate * k / len(ordered)]
    return max(fits, default=0)


def _beyond_chance(t: float, count: int, level: float) -> bool:
    return share_within(abs(t), count - 1) > 1 - level


def count_needed(t: float, count: int, level: float, most: int) -> int | None:
    """How many differences would be significant if mean and sd stay: t grows with their root.

    `t` was found with `count` of them and is not significant; None if `most` are too few.
    """
    low, high = count, most + 1
    while high - low > 1:  # low are too few; high are enough, or more than `most`
        middle = (low + high) // 2
        enough = _beyond_chance(t * sqrt(middle / count), middle, level)
        low, high = (low, middle) if enough else (middle, high)
    return high if high <= most else None


def believed(chances: Sequence[float | None], rate: float) -> list[bool]:
    """Which of several findings may be believed together (see `discoveries`); None never may."""
    known = sorted(p for p in chances if p is not None)
    found = discoveries(known, rate)
    return [bool(found) and p is not None and p <= known[found - 1] for p in chances]


def interval(values: Sequence[float], level: float) -> tuple[float, float] | None:
    """Where the mean lies but for probability `level`, by Student's t; None below two values."""
    if len(values) < 2:
        return None
    mean, error = fmean(values), stdev(values) / sqrt(len(values))
    reach = two_sided_limit(level, len(values) - 1) * error
    return mean - reach, mean + reach
