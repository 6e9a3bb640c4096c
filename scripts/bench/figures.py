"""What many results come to: medians, quartiles, shares, wins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from scripts.bench.bench import rate_interval
from scripts.bench.own import LEVELS
from scripts.bench.results import Result

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
class Wins:
    """How often a contender ends lower than another on the same problem; ties count half."""

    share: float
    shared: int  # problems that both ran

    @classmethod
    def of(cls, own: Finals, other: Finals) -> "Wins | None":
        shared = own.keys() & other.keys()
        if not shared:
            return None
        points = sum((own[p] < other[p]) + 0.5 * (own[p] == other[p]) for p in shared)
        return cls(points / len(shared), len(shared))


@dataclass(frozen=True, slots=True)
class Row:
    """One contender in one tier."""

    contender: str
    runs: int
    by_group: dict[str, tuple[float, float, float]]
    over_all: tuple[float, float, float]
    worse: int  # runs that recommend what is worse than the default
    wins: Wins | None  # against the reference
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
        wins=Wins.of(own, reference),
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
