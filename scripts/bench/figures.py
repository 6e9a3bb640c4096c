"""What many results come to: medians, quartiles, wins, spend for an equal result, and tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import median, quantiles
from typing import Any

import numpy as np

from scripts.bench.bench import rate_interval
from scripts.bench.problems import LEVELS, keyed
from scripts.bench.runs import Result

Finals = dict[str, float]
"""Final regrets by problem."""


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile; of one value, that."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def finals(results: Iterable[Result]) -> Finals:
    return {result.problem: result.final for result in results}


def groups_of(results: Iterable[Result]) -> list[str]:
    """The noises there are, less before more."""
    found = {result.group for result in results}
    levels = [*LEVELS]
    return sorted(found, key=lambda g: (levels.index(g) if g in levels else len(levels), g))


@dataclass(frozen=True, slots=True)
class Row:
    """One contender in one tier."""

    contender: str
    runs: int
    by_group: dict[str, tuple[float, float, float]]
    over_all: tuple[float, float, float]
    worse: int  # runs that recommend what is worse than the default
    shared_median: tuple[float, float] | None  # own and reference's, on the problems of both
    seconds: float  # of CPU a run, median
    failed: float  # share of evaluations
    idle: float  # share of the slots
    errors: tuple[str, ...]

    @property
    def worse_interval(self) -> tuple[float, float]:
        """Of the true rate, 95 %, exact."""
        return rate_interval(self.worse, self.runs)


def row(contender: str, results: Sequence[Result], reference: Finals) -> Row:
    """Of one contender's results in one tier."""
    own = finals(results)
    grouped = {
        group: quartiles([r.final for r in results if r.group == group])
        for group in groups_of(results)
    }
    shared = sorted(own.keys() & reference.keys())
    both = (
        (median(own[p] for p in shared), median(reference[p] for p in shared)) if shared else None
    )
    evaluations = sum(result.outcome.evaluations for result in results)
    idle = sum(result.outcome.idle for result in results)
    return Row(
        contender=contender,
        runs=len(results),
        by_group=grouped,
        over_all=quartiles(list(own.values())),
        worse=sum(regret > 1 for regret in own.values()),
        shared_median=both,
        seconds=median(result.outcome.seconds for result in results),
        failed=sum(result.outcome.failed for result in results) / max(1, evaluations),
        idle=idle / max(1, idle + evaluations),
        errors=tuple(result.outcome.error for result in results if result.outcome.error),
    )


def rows(results: Sequence[Result], against: Finals) -> list[Row]:
    """Every contender of one tier, the lowest median over all first."""
    named: dict[str, list[Result]] = {}
    for result in results:
        named.setdefault(result.contender, []).append(result)
    found = [row(contender, own, against) for contender, own in named.items()]
    return sorted(found, key=lambda row: row.over_all[1])


RESAMPLES = 1000
LEAST_REGRET = 1e-12
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
            top, middle, bottom = (log(max(r, LEAST_REGRET)) for r in (above, level, regret))
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


def number(value: float) -> str:
    """Two digits that count."""
    return f"{value:.2g}" if value < 0.001 else f"{value:.3f}"


def spread(own: tuple[float, float, float]) -> str:
    low, middle, high = own
    return f"{number(middle)} [{number(low)}, {number(high)}]"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def regrets(tier: str, results: Sequence[Result], reference: str, against: Finals) -> Iterator[str]:
    """Median and quartiles of a tier's final regrets, by noise, and how they were come by.

    `against` is what the contender named `reference` ended with.
    """
    groups = groups_of(results)
    yield f"**{tier}**: median regret [quartiles] by noise\n"
    yield (
        f"| contender | runs | {' | '.join(groups)} | all | worse than the default | "
        f"median against {reference}'s | failed | idle | CPU s |"
    )
    yield "|---|--:|" + "--:|" * (len(groups) + 6)
    for row in rows(results, against):
        yield regret_row(row, groups)
    yield ""


def regret_row(row: Row, groups: Sequence[str]) -> str:
    cells = [
        row.contender,
        str(row.runs),
        *(spread(row.by_group[g]) if g in row.by_group else "" for g in groups),
        f"**{spread(row.over_all)}**",
        worse(row),
        "" if row.shared_median is None else " / ".join(map(number, row.shared_median)),
        percent(row.failed),
        percent(row.idle),
        f"{row.seconds:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def worse(row: Row) -> str:
    low, high = row.worse_interval
    return f"{percent(row.worse / row.runs)} ({percent(low)} to {percent(high)})"


def crashes(results: Sequence[Result]) -> Iterator[str]:
    """Contenders that did not finish: counted above with what their users are left with."""
    for row in rows(results, {}):
        if row.errors:
            words = ", ".join(sorted(set(row.errors)))
            yield f"{row.contender} crashed in {len(row.errors)} of {row.runs} runs: {words}"


def spends(tier: str, results: Sequence[Result], reference: str) -> Iterator[str]:
    """What an equal median costs, against the reference, by noise."""
    groups = groups_of(results)
    names = [name for name in dict.fromkeys(r.contender for r in results) if name != reference]
    if reference not in {result.contender for result in results} or not names:
        return
    yield f"**{tier}**: spend for an equal median regret (95 % interval)\n"
    yield (
        f"| contender | {' | '.join(groups)} | all | share of the spend for {reference}'s result |"
    )
    yield "|---|" + "--:|" * (len(groups) + 2)
    for name in names:
        yield spend_row(name, results, reference, groups)
    yield ""


def spend_row(name: str, results: Sequence[Result], reference: str, groups: Sequence[str]) -> str:
    def of(contender: str, group: str | None) -> Curves:
        own = [r for r in results if r.contender == contender]
        return curves([r for r in own if group is None or r.group == group])

    cells = [times(ratio(of(name, g), of(reference, g))) for g in (*groups, None)]
    cells.append(times(price(of(name, None), of(reference, None))))
    return f"| {name} | {' | '.join(cells)} |"


def times(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    value, low, high = (_bounded(v, ratio.most) for v in (ratio.value, ratio.low, ratio.high))
    return f"{value} ({low} to {high})"


def _bounded(value: float, most: float) -> str:
    return f"> {most:g}" if value == inf else f"{value:.2f}"
