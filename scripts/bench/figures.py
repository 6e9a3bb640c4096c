"""Tables of many results: medians, quartiles, and the spend that an equal result takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import median, quantiles
from typing import Any

import numpy as np

from scripts.bench.bench import rate_interval
from scripts.bench.problems import LEVELS, keyed
from scripts.bench.runs import Result

RESAMPLES = 1000
LEAST_REGRET = 1e-12
"""Smaller regrets count as equal to it, because logarithms are taken."""

Curves = Mapping[str, Mapping[float, float]]
"""By problem: the regret at each share of the budget."""


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return lower quartile, median and upper quartile; a single value is all three."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def finals(results: Iterable[Result]) -> dict[str, float]:
    """Return the final regret by problem."""
    return {result.problem: result.final for result in results}


def curves(results: Iterable[Result]) -> Curves:
    return {result.problem: result.outcome.regrets for result in results}


def groups_of(results: Iterable[Result]) -> list[str]:
    """Return the noise levels of the results, in increasing order."""
    found = {result.group for result in results}
    levels = [*LEVELS]
    return sorted(found, key=lambda g: (levels.index(g) if g in levels else len(levels), g))


@dataclass(frozen=True, slots=True)
class Spend:
    """What one search spends over what another does at equal median regret, with 95 % bounds."""

    value: float
    low: float
    high: float
    most: float  # the largest value that the results can show; inf means more

    def __str__(self) -> str:
        value, low, high = (
            f"> {self.most:g}" if end == inf else f"{end:.2f}"
            for end in (self.value, self.low, self.high)
        )
        return f"{value} ({low} to {high})"


def price(own: Curves, reference: Curves) -> Spend | None:
    """Return the share of the budget that `own` needs for the reference's final median regret.

    None without a common problem. Below 1 `own` is cheaper. Problem instances are resampled,
    together with every noise level they were run at.
    """
    shared = sorted(own.keys() & reference.keys())
    if not shared:
        return None
    spends = sorted(set.intersection(*(set(own[problem]) for problem in shared)))
    ours = np.array([[own[problem][spend] for spend in spends] for problem in shared])
    theirs = np.array([reference[problem][1.0] for problem in shared])

    def once(rows: Any) -> float:
        middle = np.median(ours[rows], axis=0).tolist()
        return reached(spends, middle, median(theirs[rows].tolist()))

    rng = keyed("resampling", len(shared))
    places = instances(shared)

    def resampled() -> float:
        drawn = rng.integers(len(places), size=len(places))
        return once(np.concatenate([places[place] for place in drawn]))

    draws = sorted(resampled() for _ in range(RESAMPLES))
    low, high = draws[RESAMPLES // 40], draws[-RESAMPLES // 40]
    return Spend(once(slice(None)), low, high, spends[-1])


def reached(spends: Sequence[float], regrets: Sequence[float], level: float) -> float:
    """Return the least spend with a regret of `level` or less; inf if there is none.

    Between two spends the logarithm of the regret is interpolated; it begins at 1, the default's.
    """
    before, above = 0.0, 1.0
    for spend, regret in zip(spends, regrets, strict=True):
        if above <= level:
            return before
        if regret <= level:
            top, middle, bottom = (log(max(r, LEAST_REGRET)) for r in (above, level, regret))
            share = (top - middle) / (top - bottom) if top > bottom else 1.0
            return before + share * (spend - before)
        before, above = spend, regret
    return inf


def instances(problems: Sequence[str]) -> list[list[int]]:
    """Return the indices of the problems, grouped by function and instance."""
    found: dict[str, list[int]] = {}
    for place, problem in enumerate(problems):
        found.setdefault(":".join(problem.split(":")[:3]), []).append(place)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Row:
    """One contender in one tier."""

    contender: str
    runs: int
    by_group: dict[str, tuple[float, float, float]]
    over_all: tuple[float, float, float]
    worse: int  # runs whose recommendation is worse than the default
    shared_median: tuple[float, float] | None  # own and ours, on the problems that both ran
    price: Spend | None
    seconds: float  # CPU time per run, median
    errors: tuple[str, ...]

    def cells(self, groups: Sequence[str]) -> str:
        """Return the row in Markdown."""
        low, high = rate_interval(self.worse, self.runs)
        texts = [
            self.contender,
            str(self.runs),
            *(spread(self.by_group[g]) if g in self.by_group else "" for g in groups),
            f"**{spread(self.over_all)}**",
            f"{percent(self.worse / self.runs)} ({percent(low)} to {percent(high)})",
            str(self.price or ""),
            f"{self.seconds:.2f}",
        ]
        return f"| {' | '.join(texts)} |"


def rows(results: Sequence[Result], reference: str) -> list[Row]:
    """Return a row for each contender of one tier, the lowest overall median first."""
    named: dict[str, list[Result]] = {}
    for result in results:
        named.setdefault(result.contender, []).append(result)
    ours, other = finals(named.get("ours", [])), curves(named.get(reference, []))
    found = []
    for contender, own in named.items():
        regrets = finals(own)
        shared = sorted(regrets.keys() & ours.keys())
        medians = (median(regrets[p] for p in shared), median(ours[p] for p in shared))
        found.append(
            Row(
                contender=contender,
                runs=len(own),
                by_group={
                    group: quartiles([r.final for r in own if r.group == group])
                    for group in groups_of(own)
                },
                over_all=quartiles(list(regrets.values())),
                worse=sum(regret > 1 for regret in regrets.values()),
                shared_median=medians if shared else None,
                price=price(curves(own), other),
                seconds=median(result.outcome.seconds for result in own),
                errors=tuple(result.outcome.error for result in own if result.outcome.error),
            )
        )
    return sorted(found, key=lambda row: row.over_all[1])


def table(tier: str, results: Sequence[Result], reference: str) -> Iterator[str]:
    """Yield a tier's table in Markdown, and a line for each contender that crashed."""
    groups, found = groups_of(results), rows(results, reference)
    yield f"**{tier}**: median regret [quartiles] by noise\n"
    yield (
        f"| contender | runs | {' | '.join(groups)} | all | worse than the default | "
        f"spend for {reference}'s result | CPU s |"
    )
    yield "|---|--:|" + "--:|" * (len(groups) + 4)
    for row in found:
        yield row.cells(groups)
    yield ""
    for row in found:
        if row.errors:
            errors = ", ".join(sorted(set(row.errors)))
            yield f"{row.contender} crashed in {len(row.errors)} of {row.runs} runs: {errors}"


def number(value: float) -> str:
    return f"{value:.2g}" if value < 0.001 else f"{value:.3f}"


def spread(values: tuple[float, float, float]) -> str:
    low, middle, high = values
    return f"{number(middle)} [{number(low)}, {number(high)}]"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
