"""Everything there is to see of a run, as plots: one question each.

A plot is a function of the run's report, and None where the run has nothing to show in it.
"""

from collections.abc import Callable, Mapping

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

PLOTS: Mapping[str, Callable[[Report], Plot | None]] = {
    "scores": scores,
    "confirmations": confirmations,
    "pairs": pairs,
    "conditions": conditions,
    "effects": effects,
    "liveness": liveness,
    "baseline": baseline,
    "budget": budget,
    "currencies": currencies,
    "spread": spread,
    "correlations": correlations,
    "axes": axes,
    "paths": paths,
    "marginals": marginals,
    "parallel": parallel,
    "timeline": timeline,
    "times": times,
    "memory": memory,
    "curves": curves,
    "failures": failures,
}
"""By name, in reading order."""


def plots(report: Report) -> tuple[Plot, ...]:
    """Those that this run has something to show in, in reading order."""
    return tuple(plot for draw in PLOTS.values() if (plot := draw(report)) is not None)
