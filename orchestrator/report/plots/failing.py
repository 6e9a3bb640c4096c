"""Attempts that failed, by what they failed of, and when."""

from collections.abc import Mapping, Sequence

from budgets.campaign.names import shortened
from budgets.words import counted
from orchestrator.charts.chart import Axis, Bars, Chart, Mark, Plot, Role
from orchestrator.report.model import FailureGroup, Report
from orchestrator.report.plots.words import sentences

MOST_CAUSES = 24

NAME_WIDTH = 42

ROLES: Mapping[str, Role] = {
    "configuration": "failed",
    "setup": "series5",
    "infrastructure": "lost",
    "ambiguous": "series4",
}

LABELS = {
    "configuration": "the configuration's doing",
    "setup": "the setup's",
    "infrastructure": "the machine's",
    "ambiguous": "not to be told whose",
}


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
            "A configuration that fails is a result. What may be the machine's doing is tried "
            "again, and is final only where that does not help.",
            f"{counted(left_out, 'rarer cause')} left out." if left_out else "",
        ),
        description=sentences(*map(_said, report.failures)),
        charts=[_by_cause(own)],
        aspect=0.03 + 0.035 * len(own),
    )


def _by_cause(own: Sequence[FailureGroup]) -> Chart:
    marks: list[Mark] = []
    for whose, role in ROLES.items():
        rows = [(float(p), g) for p, g in enumerate(own) if g.whose == whose and g.final]
        if rows:
            final = [float(group.final) for _, group in rows]
            zero, label = [0.0] * len(rows), f"final: {LABELS[whose]}"
            places = [place for place, _ in rows]
            marks.append(Bars(places, zero, final, role, label, is_horizontal=True))
    again = [(float(p), g) for p, g in enumerate(own) if g.attempts > g.final]
    if again:
        places, low = [place for place, _ in again], [float(g.final) for _, g in again]
        high = [float(group.attempts) for _, group in again]
        marks.append(Bars(places, low, high, "muted", "retried", is_horizontal=True))
    names = shortened([group.what for group in own], NAME_WIDTH)
    x = Axis("attempts", low=0.0, is_whole=True, has_zero=True)
    return Chart(x, Axis("", categories=names), marks)


def _said(group: FailureGroup) -> str:
    whole = counted(group.attempts, "attempt")
    return f"{group.what} ({group.whose}): {whole}, {group.final} of them final."
