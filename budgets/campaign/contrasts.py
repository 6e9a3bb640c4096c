"""Contrasts of a factorial: which conditions are weighed against which, and on which seeds.

A main effect is a level against the factor's first level, averaged over the combinations of all
other factors. A two-factor interaction is a difference of differences: how much more moving one
factor does at a level of the other than at its first level. Both average with equal weights over
combinations in which every corner is there, so that no other factor takes part: an average over
unlike combinations would mix their effects in. D. C. Montgomery, "Design and Analysis of
Experiments", chapter 5; with an interaction there half of the one here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import fsum

from budgets.terms import Condition, Factor

Cells = Mapping[tuple[str, ...], int]
"""The number of the condition at each combination of levels, in the order of the factors."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Conditions with weights that add up to nothing."""

    factors: tuple[str, ...]  # one, or two that interact
    levels: tuple[str, ...]  # of each ...
    against: tuple[str, ...]  # ... and what it is compared with
    combinations: int  # of the other factors' levels there are
    averaged: int  # of these, over so many
    weights: Mapping[int, float] = field(default_factory=dict)  # by the number of the condition

    def values(self, scores: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
        """The contrast by seed, on those on which every condition in it has a score."""
        if not self.weights:
            return {}
        seeds = set.intersection(*(set(scores[number]) for number in self.weights))
        return {
            seed: fsum(weight * scores[number][seed] for number, weight in self.weights.items())
            for seed in sorted(seeds)
        }


def cells_of(
    factors: Sequence[Factor], conditions: Sequence[Condition]
) -> dict[tuple[str, ...], int]:
    """The conditions that are cells of the factorial.

    A control is one only where no other condition has its levels.
    """
    names = [factor.name for factor in factors]
    found: dict[tuple[str, ...], int] = {}
    for controls in (False, True):
        for number, condition in enumerate(conditions):
            if condition.control is controls and all(name in condition.levels for name in names):
                found.setdefault(tuple(condition.levels[name] for name in names), number)
    return found if names else {}


def contrasts(factors: Sequence[Factor], cells: Cells) -> Iterator[Contrast]:
    """Every main effect, then every two-factor interaction, of the cells that there are."""
    places = range(len(factors))
    for count in (1, 2):
        for chosen in combinations(places, count):
            for levels in product(*(factors[place].levels[1:] for place in chosen)):
                yield _contrast(factors, cells, dict(zip(chosen, levels, strict=True)))


def _contrast(factors: Sequence[Factor], cells: Cells, moved: Mapping[int, str]) -> Contrast:
    """The factors at these places moved from their first levels to these."""
    others = [
        factor.levels if place not in moved else (factor.levels[0],)
        for place, factor in enumerate(factors)
    ]
    whole = [
        corners
        for rest in product(*others)
        if (corners := _corners(cells, rest, moved)) is not None
    ]
    weights: dict[int, float] = {}
    for number, sign in (corner for corners in whole for corner in corners):
        weights[number] = sign / len(whole)
    combined = 1
    for levels in others:
        combined *= len(levels)
    return Contrast(
        factors=tuple(factors[place].name for place in moved),
        levels=tuple(moved.values()),
        against=tuple(factors[place].levels[0] for place in moved),
        combinations=combined,
        averaged=len(whole),
        weights=weights,
    )


def _corners(
    cells: Cells, rest: Sequence[str], moved: Mapping[int, str]
) -> list[tuple[int, int]] | None:
    """The conditions with each of the moved factors moved or not, and their signs.

    None where one of them is missing.
    """
    corners = []
    for which in product((False, True), repeat=len(moved)):
        levels = list(rest)
        for (place, level), is_moved in zip(moved.items(), which, strict=True):
            if is_moved:
                levels[place] = level
        number = cells.get(tuple(levels))
        if number is None:
            return None
        corners.append((number, 1 if (len(moved) - sum(which)) % 2 == 0 else -1))
    return corners


def usable(cells: Cells, scores: Mapping[int, Mapping[int, float]]) -> dict[tuple[str, ...], int]:
    """The cells with a score on half of the seeds at least that the fullest one has.

    A cell that nearly always fails would leave every effect without seeds to be seen on.
    """
    most = max((len(scores[number]) for number in cells.values()), default=0)
    return {
        levels: number
        for levels, number in cells.items()
        if scores[number] and 2 * len(scores[number]) >= most
    }
