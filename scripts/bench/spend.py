"""What an equal result costs: the spend at which one contender's median reaches another's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import median
from typing import Any

import numpy as np

from scripts.bench.draws import keyed
from scripts.bench.results import Result

RESAMPLES = 1000
LEAST = 1e-12
"""Regrets below it are equal: their logarithm is taken."""

Curves = Mapping[str, Mapping[float, float]]
"""Regret by spend, by problem."""


def curves(results: Sequence[Result]) -> Curves:
    return {result.problem: result.outcome.regrets for result in results}


def reached(spends: Sequence[float], regrets: Sequence[float], level: float) -> float:
    """The least spend with that regret or less; infinite where the curve never gets there.

    Between two spends the regret's logarithm is on a line, which begins at 1, the default's.
    """
    before, above = 0.0, 1.0
    for spend, regret in zip(spends, regrets, strict=True):
        if above <= level:
            return before
        if regret <= level:
            top, middle, bottom = (log(max(r, LEAST)) for r in (above, level, regret))
            share = (top - middle) / (top - bottom) if top > bottom else 1.0
            return before + share * (spend - before)
        before, above = spend, regret
    return inf


@dataclass(frozen=True, slots=True)
class Ratio:
    """Spend of one over spend of the other at equal median regret, with its 95 % interval."""

    value: float
    low: float
    high: float
    most: float  # what could be seen: infinite means more than this


def ratio(own: Curves, reference: Curves, at: float = 1.0) -> Ratio | None:
    """What the reference needs for our median regret at spend `at`, as a multiple of `at`.

    Above 1: ours is cheaper. Instances are resampled, for both at once and with every noise that
    they were met with.
    """
    shared = sorted(own.keys() & reference.keys())
    if not shared:
        return None
    spends = sorted(set.intersection(*(set(reference[problem]) for problem in shared)))
    ours = np.array([own[problem][at] for problem in shared])
    theirs = np.array([[reference[problem][spend] for spend in spends] for problem in shared])

    def once(rows: Any) -> float:
        middle = np.median(theirs[rows], axis=0).tolist()
        return reached(spends, middle, median(ours[rows].tolist())) / at

    rng = keyed("resampling", len(shared))
    places = instances(shared)

    def resampled() -> float:
        drawn = rng.integers(len(places), size=len(places))
        return once(np.concatenate([places[place] for place in drawn]))

    draws = sorted(resampled() for _ in range(RESAMPLES))
    low, high = draws[RESAMPLES // 40], draws[-RESAMPLES // 40]
    return Ratio(once(slice(None)), low, high, spends[-1] / at)


def instances(problems: Sequence[str]) -> list[list[int]]:
    """Places of those that are one instance of one function."""
    found: dict[str, list[int]] = {}
    for place, problem in enumerate(problems):
        found.setdefault(":".join(problem.split(":")[:3]), []).append(place)
    return list(found.values())


def price(own: Curves, reference: Curves) -> Ratio | None:
    """What ours spends for the reference's median regret at the whole budget, as a share of it.

    Below 1: ours is cheaper. Along one search's course, which had the whole budget in mind.
    """
    return ratio(reference, own)
