"""Attempts that failed, by what they failed of, and when."""

from collections.abc import Sequence

from budgets.campaign.names import shortened
from orchestrator.charts.chart import Axis, Bars, Chart, Mark, Plot
from orchestrator.report.model import FailureGroup, Report
from orchestrator.report.plots.words import counted, sentences

MOST_CAUSES = 24

NAME_WIDTH = 52


def failures(report: Report) -> Plot | None:
    """Failures by cause; None where nothing failed."""
    own = report.failures[:MOST_CAUSES]
    if not own:
        return None
    left_out = len(report.failures) - len(own)
    return Plot(
        name="failures",
        title="Failures by cause",
        caption=sentences(
            "A failure that is the configuration's is a result; one that is the machine's was "
            "tried again, and is final only where that did not help.",
            f"{counted(left_out, 'rarer cause')} left out." if left_out else "",
        ),
        description=sentences(*map(_said, report.failures)),
        charts=[_by_cause(own)],
        aspect=0.03 + 0.035 * len(own),
    )


def _by_cause(own: Sequence[FailureGroup]) -> Chart:
    names = shortened([f"{group.what} ({group.whose})" for group in own], NAME_WIDTH)
    places = [float(place) for place in range(len(own))]
    final = [float(group.final) for group in own]
    every = [float(group.attempts) for group in own]
    marks: list[Mark] = []
    if any(final):
        marks.append(Bars(places, [0.0] * len(own), final, "failed", "final", is_horizontal=True))
    if final != every:
        marks.append(Bars(places, final, every, "lost", "tried again", is_horizontal=True))
    x = Axis("attempts", low=0.0, is_whole=True, has_zero=True)
    return Chart(x, Axis("", categories=names), marks)


def _said(group: FailureGroup) -> str:
    whole = counted(group.attempts, "attempt")
    return f"{group.what} ({group.whose}): {whole}, {group.final} of them final."
