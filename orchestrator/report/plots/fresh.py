"""Scores on fresh seeds, which nobody was picked on."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from budgets.statistics.paired import interval
from budgets.verdict.finalists import BASELINE
from budgets.words import number
from orchestrator.charts.chart import Role
from orchestrator.report.model import Report

NOISE_SDS = 2.0
"""Half the height of the band in which the baseline's scores lie."""

LEVEL = 0.05
"""How often the interval of a mean misses it."""


@dataclass(frozen=True)
class Fresh:
    """Scores of one configuration on fresh seeds, and where their mean lies."""

    mean: float
    low: float | None
    high: float | None
    seeds: int

    @property
    def in_words(self) -> str:
        sure = "" if self.low is None else f" (95%: {number(self.low)} to {number(self.high)})"
        return f"{number(self.mean)}{sure}"


def fresh_of(report: Report) -> dict[Role, Fresh]:
    """Of the winner and of the baseline, on the seeds that both have scores on."""
    arms: dict[Role, dict[int, float]] = {
        "baseline": report.fresh_scores("reference", BASELINE),
        "winner": report.fresh_scores("winner"),
    }
    both = sorted(set.intersection(*map(set, arms.values())))
    return {role: _mean_of([own[s] for s in both]) for role, own in arms.items() if both}


def _mean_of(scores: Sequence[float]) -> Fresh:
    low, high = interval(scores, LEVEL) or (None, None)
    return Fresh(fmean(scores), low, high, len(scores))
