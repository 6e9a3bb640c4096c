"""Everything there is to see of a run, as plots: one question each.

A plot is a function of the run's report, and None where the run has nothing to show in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.charts.chart import Plot
from orchestrator.report.model import Report
from orchestrator.report.plots.campaigns import conditions, effects
from orchestrator.report.plots.checks import baseline, liveness
from orchestrator.report.plots.devices import timeline
from orchestrator.report.plots.distribution import axes, correlations, spread
from orchestrator.report.plots.effort import memory, times
from orchestrator.report.plots.failing import failures
from orchestrator.report.plots.gains import confirmations, pairs
from orchestrator.report.plots.knobs import marginals, paths
from orchestrator.report.plots.losses import curves
from orchestrator.report.plots.parallel import parallel
from orchestrator.report.plots.progress import scores
from orchestrator.report.plots.spending import budget, currencies


@dataclass(frozen=True)
class Kind:
    """One question."""

    draw: Callable[[Report], Plot | None]
    section: str  # of the report that shows it
    needs: str  # what it takes


PLOTS: Mapping[str, Kind] = {
    "scores": Kind(scores, "scores", "a search with a candidate that is settled"),
    "confirmations": Kind(
        confirmations, "verdict", "a search whose winner is compared with the baseline"
    ),
    "pairs": Kind(pairs, "verdict", "two configurations with scores on the same seeds"),
    "conditions": Kind(conditions, "verdict", "a campaign"),
    "effects": Kind(effects, "verdict", "a campaign with factors or a control"),
    "liveness": Kind(liveness, "verdict", "a check that has measured its baseline, and a knob"),
    "baseline": Kind(baseline, "scores", "a calibration with an evaluation that is over"),
    "budget": Kind(budget, "budget", "device time that was paid or reserved"),
    "currencies": Kind(currencies, "budget", "a budget"),
    "spread": Kind(spread, "search", "a search with a generation that is over"),
    "axes": Kind(axes, "search", "a search with a generation that is over, and two knobs"),
    "correlations": Kind(
        correlations, "search", "a search with a generation that is over, and two knobs"
    ),
    "paths": Kind(paths, "knobs", "a search with a candidate that is settled"),
    "marginals": Kind(marginals, "knobs", "a search with scores of several candidates"),
    "parallel": Kind(parallel, "knobs", "a search with a score, and two knobs"),
    "timeline": Kind(timeline, "evaluations", "an attempt that is over or in flight"),
    "times": Kind(times, "evaluations", "an evaluation that is over"),
    "memory": Kind(memory, "evaluations", "an evaluation whose memory was measured"),
    "curves": Kind(curves, "training", "an evaluation that left a loss curve"),
    "failures": Kind(failures, "failures", "an attempt that failed"),
}
"""By name, in reading order."""


def plots(report: Report) -> tuple[Plot, ...]:
    """Those that this run has something to show in, in reading order."""
    return tuple(plot for kind in PLOTS.values() if (plot := kind.draw(report)) is not None)
