"""Differences between scores of one seed each: their mean, how sure it is, what may be believed."""

from collections.abc import Sequence
from statistics import fmean, stdev

from budgets.frozen import Frozen
from budgets.stats import believed, chance, interval

LEVEL = 0.05
"""How often an interval misses what it is of."""

TINY = 1e-9
"""Of the scale: differences below are rounding."""


class Difference(Frozen):
    """A mean difference between scores, and how sure it is."""

    seeds: int  # that it was seen on
    mean: float | None  # None without a seed
    lower: float | None  # bounds of the interval; None below two seeds
    upper: float | None
    sd: float | None  # of one seed's difference
    chance: float | None  # of so large a |t| were there none; None below two seeds
    percent: float | None  # of the reference, likewise its bounds
    percent_lower: float | None
    percent_upper: float | None
    is_found: bool = False  # too much for chance, all its kind considered


def difference(values: Sequence[float], reference: float | None, size: float) -> Difference:
    """That of one value a seed, in percent of `reference`. Scores are about as large as `size`."""
    values = _without_rounding(values, TINY * size)
    mean = fmean(values) if values else None
    lower, upper = interval(values, LEVEL) or (None, None)
    is_enough = len(values) > 1

    def percent(value: float | None) -> float | None:
        return None if value is None or not reference else 100 * value / abs(reference)

    return Difference(
        seeds=len(values),
        mean=mean,
        lower=lower,
        upper=upper,
        sd=stdev(values) if is_enough else None,
        chance=round(chance(values), 9) if is_enough else None,
        percent=percent(mean),
        percent_lower=percent(lower),
        percent_upper=percent(upper),
    )


def _without_rounding(values: Sequence[float], tiny: float) -> list[float]:
    """Values that lie no further apart than rounding puts them are one, 0 if that is as near."""
    kept = [0.0 if abs(value) <= tiny else value for value in values]
    if kept and max(kept) - min(kept) <= tiny:
        return [fmean(kept)] * len(kept)
    return kept


def judged_together(differences: Sequence[Difference], rate: float | None) -> list[Difference]:
    """With those named that may be believed together; none may before the campaign is over."""
    if rate is None:
        return list(differences)
    flags = believed([own.chance for own in differences], rate)
    return [
        own.model_copy(update={"is_found": flag})
        for own, flag in zip(differences, flags, strict=True)
    ]
