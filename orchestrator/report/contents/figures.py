"""Where each plot stands."""

from collections.abc import Iterable, Mapping

from orchestrator.charts.chart import Plot
from orchestrator.report.contents.blocks import Figure

PLACES: Mapping[str, tuple[str, ...]] = {
    "verdict": ("confirmations", "pairs", "conditions", "effects", "liveness"),
    "scores": ("scores", "baseline"),
    "budget": ("budget", "currencies"),
    "search": ("spread", "axes", "correlations"),
    "knobs": ("paths", "marginals", "parallel"),
    "evaluations": ("timeline", "times", "memory"),
    "training": ("curves",),
    "failures": ("failures",),
}
"""Names of plots by the section that shows them, in their order there."""


class Figures:
    """The plots that a run has something to show in, by the sections that show them."""

    def __init__(self, plots: Iterable[Plot]) -> None:
        self._plots = {plot.name: plot for plot in plots}

    def of(self, section: str) -> list[Figure]:
        """Those of a section."""
        own = PLACES.get(section, ())
        return [Figure(self._plots[name]) for name in own if name in self._plots]
