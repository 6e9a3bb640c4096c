"""Gains on seeds that both configurations were evaluated on, and how sure they are.

A gain is relative: (reference - score) / |mean of the reference|, lower scores being better.
"""

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from statistics import fmean, stdev

from budgets.frozen import Frozen
from budgets.statistics.detectable import detectable
from budgets.statistics.students_t import one_sided_limit


class Gain(Frozen):
    """How much better one configuration is than another on the seeds that both have scores on."""

    pairs: int
    mean: float | None  # None without a pair, or where the reference scores 0
    sd: float | None  # of one pair's gain; None below two pairs
    lower: float | None  # one-sided confidence bounds of the mean
    upper: float | None
    level: float  # with which probability each bound misses it
    detectable: float | None  # smallest true gain that so many pairs show, 8 times of 10

    @property
    def is_shown(self) -> bool:
        """Whether the gain is more than chance."""
        return self.lower is not None and self.lower > 0

    @property
    def is_loss(self) -> bool:
        """Whether it is worse by more than chance."""
        return self.upper is not None and self.upper < 0


def gain(scores: Mapping[int, float], reference: Mapping[int, float], level: float) -> Gain:
    """The gain of `scores` over `reference`, each by seed."""
    seeds = sorted(set(scores) & set(reference))
    scale = abs(fmean(reference[seed] for seed in seeds)) if seeds else 0.0
    if not scale:
        return Gain(
            pairs=len(seeds),
            mean=None, sd=None, lower=None, upper=None, level=level, detectable=None,
        )  # fmt: skip
    gains = [(reference[seed] - scores[seed]) / scale for seed in seeds]
    mean, pairs = fmean(gains), len(gains)
    if pairs < 2:
        return Gain(
            pairs=pairs,
            mean=mean, sd=None, lower=None, upper=None, level=level, detectable=None,
        )  # fmt: skip
    sd = stdev(gains)
    reach = one_sided_limit(level, pairs - 1) * sd / sqrt(pairs)
    return Gain(
        pairs=pairs,
        mean=mean,
        sd=sd,
        lower=mean - reach,
        upper=mean + reach,
        level=level,
        detectable=detectable(sd, pairs, level),
    )


def better(share: float) -> str:
    """`1.3% better`, `0.204% worse`, `no better`: three digits, so no limit is met by rounding."""
    size = round(100 * abs(share), 3)
    if size == 0:
        return "no better"
    digits = f"{size:.3g}" if size < 1000 else f"{size:.0f}"
    return f"{digits}% {'worse' if share < 0 else 'better'}"


def unexplained(rows: Sequence[Mapping[int, float]]) -> tuple[float, int]:
    """Sum of squares that neither configuration nor seed explains, and its degrees of freedom.

    `rows` are the scores of each configuration by seed; seeds that one of them lacks are left out.
    Two-way analysis of variance without replication: R. A. Fisher, "The Design of Experiments".
    """
    seeds = sorted(set.intersection(*map(set, rows))) if rows else []
    if len(rows) < 2 or len(seeds) < 2:
        return 0.0, 0
    by_seed = {seed: fmean(row[seed] for row in rows) for seed in seeds}
    mean = fmean(by_seed.values())
    residuals = (
        row[seed] - fmean(row[s] for s in seeds) - by_seed[seed] + mean
        for row in rows
        for seed in seeds
    )
    return fsum(residual**2 for residual in residuals), (len(rows) - 1) * (len(seeds) - 1)
