"""Whether two lists of scores of the same things agree: in order, at the top, in size."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from operator import itemgetter, mul
from random import Random
from statistics import fmean

RESAMPLES = 2000


def tau_b(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kendall's rank correlation, -1 to 1, ties allowed; None where a list is all one score.

    (pairs ordered alike - pairs ordered otherwise) / sqrt(pairs that differ in a * in b): M. G.
    Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945) 239-251. Raises
    ValueError unless the lists are equally long.
    """
    _check_lengths(a, b)
    return _tau(a, b, _agreement(a, b), range(len(a)))


def tau_b_interval(
    a: Sequence[float],
    b: Sequence[float],
    random: Random,
    level: float = 0.05,
) -> tuple[float, float] | None:
    """Where the tau-b of all such things may lie, two-sided at `level`: percentile bootstrap.

    The things, as pairs of scores, are drawn anew, as many as there are; draws without a tau-b are
    left out, and None is returned if no draw has one. With fewer than ten things or so it is
    rather too narrow: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993),
    chapters 13 and 14. Raises ValueError as `tau_b`.
    """
    _check_lengths(a, b)
    if len(a) < 2:
        return None
    alike, things = _agreement(a, b), range(len(a))
    drawn = (_tau(a, b, alike, random.choices(things, k=len(a))) for _ in range(RESAMPLES))
    taus = sorted(tau for tau in drawn if tau is not None)
    if not taus:
        return None
    beyond = int(level / 2 * len(taus))
    return taus[beyond], taus[-1 - beyond]


def top_overlap(a: Sequence[float], b: Sequence[float], k: int) -> float:
    """The share of the best k of `a` that are among the best k of `b`; lower scores are better.

    Of equal scores the earlier is the better. Raises ValueError unless 1 <= k <= both lengths.
    """
    _check_lengths(a, b)
    if not 1 <= k <= len(a):
        raise ValueError(f"expected a k from 1 to {len(a)}, got {k}")
    return len(_best(a, k) & _best(b, k)) / k


def centred_error(a: Sequence[float], b: Sequence[float]) -> float:
    """Mean |difference| in the scores' unit, after the mean (not median) difference is removed.

    What remains is what no constant shift explains; a different scale is not removed. Raises
    ValueError unless the lists are equally long and not empty.
    """
    _check_lengths(a, b)
    if not a:
        raise ValueError("expected at least one pair of scores, got none")
    differences = [x - y for x, y in zip(a, b, strict=True)]
    mean = fmean(differences)
    return fmean(abs(d - mean) for d in differences)


def _check_lengths(a: Sequence[float], b: Sequence[float]) -> None:
    if len(a) != len(b):
        raise ValueError(f"expected two scores of every thing, got {len(a)} and {len(b)}")


def _best(scores: Sequence[float], k: int) -> set[int]:
    return set(sorted(range(len(scores)), key=scores.__getitem__)[:k])


def _orders(scores: Sequence[float]) -> list[list[int]]:
    return [[int(x > y) - int(x < y) for y in scores] for x in scores]


def _agreement(a: Sequence[float], b: Sequence[float]) -> list[list[int]]:
    """For thing i and thing j: 1 where both lists order them alike, -1 where otherwise, or 0."""
    rows = zip(_orders(a), _orders(b), strict=True)
    return [list(map(mul, row, other)) for row, other in rows]


def _tau(
    a: Sequence[float], b: Sequence[float], alike: list[list[int]], things: Sequence[int]
) -> float | None:
    """Tau-b of the things drawn, each as often as it was; `alike` is their `_agreement`."""
    if len(things) < 2:
        return None
    pick = itemgetter(*things)
    pairs = _differing(pick(a)) * _differing(pick(b))
    return sum(sum(pick(row)) for row in pick(alike)) / sqrt(pairs) if pairs else None


def _differing(scores: Sequence[float]) -> int:
    """How many of all n * n pairs are not equal."""
    return len(scores) ** 2 - sum(count**2 for count in Counter(scores).values())
