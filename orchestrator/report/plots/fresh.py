"""Scores on fresh seeds, which nobody was picked on."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from budgets.statistics.paired import interval
from budgets.words import number
from orchestrator.charts.chart import Role
from orchestrator.report.model import Report

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
    baseline = next(
        (a.scores for a in report.arms if a.panel == "reference" and a.name == "baseline"), {}
    )
    winner = next((a.scores for a in report.arms if a.panel == "winner"), {})
    both = {s for s in set(baseline) & set(winner) if None not in (baseline[s], winner[s])}
    if not both:
        return {}
    arms: dict[Role, dict[int, float | None]] = {"baseline": baseline, "winner": winner}
    return {role: _mean_of([own[s] for s in sorted(both)]) for role, own in arms.items()}


def _mean_of(values: Sequence[float | None]) -> Fresh:
    known = [value for value in values if value is not None]
    low, high = interval(known, LEVEL) or (None, None)
    return Fresh(fmean(known), low, high, len(known))
