"""Inference from few scores: intervals, chances, power, rank correlation. scipy loads on use.

A gain is relative: (reference - score) / |mean of the reference|; lower scores are better.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import inf, sqrt
from operator import add
from random import Random
from statistics import fmean, stdev

ROUNDING = 1e-12
"""A gain, as a share, or a mean score no larger than this is a rounding error."""

RESAMPLES = 2000
"""Draws of a bootstrap."""


def total(values: Iterable[float]) -> float:
    """The sum from left to right: `sum` rounds otherwise from Python 3.12 on. Replay needs it."""
    return reduce(add, values, 0.0)


def one_sided_limit(level: float, freedom: int) -> float:
    """The t that T exceeds with probability `level`."""
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, level))


def interval(values: Sequence[float], level: float) -> tuple[float, float] | None:
    """Confidence interval of the mean, missed with probability `level`; None below two values."""
    if len(values) < 2:
        return None
    mean = fmean(values)
    reach = one_sided_limit(level / 2, len(values) - 1) * stdev(values) / sqrt(len(values))
    return mean - reach, mean + reach


def chance(differences: Sequence[float]) -> float:
    """The probability of so large a |t| without an effect.

    Equal differences have probability 0, unless they are 0; fewer than two have 1.
    """
    from scipy.special import stdtr

    if len(differences) < 2 or not any(differences):
        return 1.0
    error = stdev(differences) / sqrt(len(differences))
    t = fmean(differences) / error if error else inf
    return 2 * float(stdtr(len(differences) - 1, -abs(t)))


def believed(chances: Sequence[float | None], rate: float) -> list[bool]:
    """Which findings hold at this false discovery rate; None never does.

    Y. Benjamini and Y. Hochberg, J. Royal Statistical Society B 57 (1995) 289-300.
    """
    known = sorted(p for p in chances if p is not None)
    limit = max((p for k, p in enumerate(known, 1) if p <= rate * k / len(known)), default=-1.0)
    return [p is not None and p <= limit for p in chances]


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one thing scores than another, as a share of the other's score."""

    pairs: int  # seeds with scores of both
    mean: float | None  # None without a pair, or where the reference scores 0
    sd: float | None  # of one pair's gain; None below two pairs, like the bounds
    lower: float | None  # one-sided confidence bounds of the mean
    upper: float | None
    level: float  # the probability that a bound misses the truth
    chance: float | None  # of so large a |t| without an effect
    detectable: float | None  # smallest true gain that so many pairs show at 80 % power

    @property
    def is_shown(self) -> bool:
        """Whether the gain is more than chance."""
        return self.lower is not None and self.lower > 0

    @property
    def is_loss(self) -> bool:
        """Whether it is worse by more than chance."""
        return self.upper is not None and self.upper < 0


@dataclass(frozen=True, slots=True)
class NamedGain:
    """A gain of one thing over another."""

    kind: str  # as `verdict.findings` and `measurements.campaign_report` list them
    name: str
    against: str
    gain: Gain
    is_found: bool  # more than chance; in a campaign all of its kind considered


def gain(
    scores: Mapping[int, float], reference: Mapping[int, float], level: float, sign: int = 1
) -> Gain:
    """The gain of `scores` over `reference`, each by seed; `sign` -1 where higher is better."""
    seeds = sorted(set(scores) & set(reference))
    size = fmean(reference[seed] for seed in seeds) if seeds else 0.0
    return gain_of([sign * (reference[seed] - scores[seed]) for seed in seeds], size, level)


def gain_of(improvements: Sequence[float], reference: float, level: float) -> Gain:
    """The gain of one improvement a pair, as shares of `reference`."""
    scale = abs(reference)
    gains = [one / scale for one in improvements] if scale else []
    if all(abs(one) < ROUNDING for one in gains):
        gains = [0.0] * len(gains)
    sd = stdev(gains) if len(gains) > 1 else None
    lower, upper = interval(gains, 2 * level) or (None, None)
    return Gain(
        pairs=len(improvements),
        mean=fmean(gains) if gains else None,
        sd=sd,
        lower=lower,
        upper=upper,
        level=level,
        chance=None if sd is None else round(chance(gains), 9),
        detectable=None if sd is None else detectable(sd, len(gains), level),
    )


# Rates


def at_least(count: int, trials: int, rate: float) -> float:
    """The probability that something with that rate happens so often, or more often."""
    from scipy.special import bdtrc

    return float(bdtrc(count - 1, trials, rate)) if count <= trials else 0.0


def lowest_rate(count: int, trials: int, level: float) -> float:
    """The exact lower bound of a rate: the true one is below it with probability `level` at most.

    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413.
    """
    from scipy.special import betaincinv

    return float(betaincinv(count, trials - count + 1, level)) if count else 0.0


# Power of a one-sided paired t test: a tail of the noncentral t


def detectable(sd: float, n: int, level: float, power: float = 0.8) -> float:
    """The smallest true mean gain that n pairs show with probability `power`, in `sd`'s unit."""
    if sd == 0:
        return 0.0
    from scipy.special import nctdtrinc

    return sd / sqrt(n) * float(nctdtrinc(n - 1, 1 - power, one_sided_limit(level, n - 1)))


# Agreement of two lists of scores of the same things


def tau_b(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kendall's rank correlation, -1 to 1, ties allowed; None where a list is all one score.

    scipy's takes a second to import and, of few scores, thirty times as long.
    """
    pairs = combinations(zip(a, b, strict=True), 2)
    orders = [((x > u) - (x < u), (y > v) - (y < v)) for (x, y), (u, v) in pairs]
    untied = sum(x * x for x, _ in orders) * sum(y * y for _, y in orders)
    return sum(x * y for x, y in orders) / sqrt(untied) if untied else None


def tau_b_interval(
    a: Sequence[float], b: Sequence[float], random: Random, level: float = 0.05
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of tau-b, two-sided at `level`; None if no draw has a tau-b.

    Too narrow for fewer than about ten pairs: B. Efron and R. J. Tibshirani, "An Introduction to
    the Bootstrap" (1993), chapters 13 and 14.
    """
    pairs = list(zip(a, b, strict=True))
    draws = (random.choices(pairs, k=len(pairs)) for _ in range(RESAMPLES))
    taus = sorted(tau for draw in draws if (tau := tau_b(*zip(*draw, strict=True))) is not None)
    if not taus:
        return None
    beyond = int(level / 2 * len(taus))
    return taus[beyond], taus[-1 - beyond]
