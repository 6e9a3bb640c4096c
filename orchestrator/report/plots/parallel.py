"""All knobs of each candidate at once, in parallel coordinates: a row a knob."""

from collections.abc import Iterator, Sequence

from budgets.words import counted, listed
from orchestrator.charts.chart import Axis, Chart, Line, Mark, Numbers, Plot, Points, Role
from orchestrator.report.model import KnobView, Report
from orchestrator.report.plots.candidates import Candidate, candidates
from orchestrator.report.plots.scales import in_words
from orchestrator.report.plots.words import sentences, thinned

MOST_BEST, MOST_REST = 30, 90
"""Lines: more are a grey sheet."""


def parallel(report: Report) -> Plot | None:
    """The best tenth among all candidates; None without two knobs and a score."""
    own = [c for c in candidates(report) if c.score is not None and not c.is_short]
    views = report.knobs
    if len(views) < 2 or not own:
        return None
    ranked = sorted(own, key=lambda c: (c.score or 0.0, c.generation, c.number))
    count = max(1, round(len(ranked) / 10))
    best, rest = thinned(ranked[:count], MOST_BEST), thinned(ranked[count:], MOST_REST)
    marks = [*_candidate_lines(best, rest), *_marked(views)]
    names = [f"{v.name} ({in_words(v.low, 3)} to {in_words(v.high, 3)})" for v in views]
    x = Axis("place in the knob's range, as searched", low=0.0, high=1.0)
    return Plot(
        name="parallel",
        title="Candidates, all knobs at once",
        caption=sentences(
            "A line is a candidate. Where the best tenth runs through a neck, the knob decides; "
            "where it is as wide as the others, it does not.",
            _left_out(len(ranked), len(best) + len(rest)),
        ),
        description=_said(views, ranked[:count]),
        charts=[Chart(x, Axis("", categories=names), marks)],
        aspect=max(0.2, 0.05 * len(views)),
    )


def _candidate_lines(best: Sequence[Candidate], rest: Sequence[Candidate]) -> Iterator[Mark]:
    if rest:
        x, y = _polylines([c.point for c in rest])
        yield Line(x, y, "muted", "other candidates", is_thin=True, is_faint=True)
    x, y = _polylines([c.point for c in best])
    yield Line(x, y, "best", "best tenth", is_thin=True)


def _marked(views: Sequence[KnobView]) -> Iterator[Mark]:
    """The baseline and the recommendation, over all others."""
    chosen = [v.recommended_unit for v in views if v.recommended_unit is not None]
    arms: list[tuple[Role, str, Sequence[float]]] = [
        ("baseline", "baseline", [v.baseline_unit for v in views])
    ]
    if len(chosen) == len(views):
        arms.append(("winner", "recommended", chosen))
    rows = [float(row) for row in range(len(views))]
    for role, label, point in arms:
        yield Line(point, rows, role, label)
        yield Points(point, rows, role, label, is_large=True)


def _polylines(points: Sequence[Sequence[float]]) -> tuple[Numbers, Numbers]:
    """One line that breaks between them, from the first knob at the top to the last."""
    x: list[float | None] = []
    y: list[float | None] = []
    for point in points:
        x += [*point, None]
        y += [*(float(row) for row in range(len(point))), None]
    return x, y


def _left_out(count: int, shown: int) -> str:
    return "" if shown == count else f"Of {count} candidates with a score {shown} are shown."


def _said(views: Sequence[KnobView], best: Sequence[Candidate]) -> str:
    ranges = []
    for place, view in enumerate(views):
        own = [c.point[place] for c in best]
        ranges.append(f"{view.name} {100 * min(own):.0f} to {100 * max(own):.0f}%")
    return sentences(
        f"The best tenth is {counted(len(best), 'candidate')}, from {best[0].score:.5g} to "
        f"{best[-1].score:.5g}.",
        f"Of each knob's range they take: {listed(ranges, 24)}.",
    )
