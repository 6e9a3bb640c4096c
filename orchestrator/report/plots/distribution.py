"""CMA-ES itself: how wide it searches, which knobs go together, and along which axes."""

from collections.abc import Iterator, Sequence

from budgets.words import counted, listed
from orchestrator.charts.chart import (
    SERIES,
    Axis,
    Bars,
    Cells,
    Chart,
    Line,
    Mark,
    Plot,
    Points,
    Role,
    Rule,
)
from orchestrator.report.model import Distribution, Report
from orchestrator.report.plots.candidates import generation_axis
from orchestrator.report.plots.words import sentences

MOST_NAMED = 8
"""Pairs of knobs that a description names."""


def spread(report: Report) -> Plot | None:
    """Step size, axis ratio and each knob's deviation; None without a generation told."""
    own = report.distribution
    if own is None or not own.history:
        return None
    names = [knob.name for knob in report.knobs]
    charts = [
        _course(report, own, [s.sigma for s in own.history], "Step size (sigma)"),
        _course(report, own, [s.axis_ratio for s in own.history], "Axis ratio"),
        *_deviations(report, own, names),
    ]
    return Plot(
        name="spread",
        title="How wide the search looks",
        caption="A step size that falls means that the search closes in; one that grows, that it "
        "follows a slope or sees only noise. An axis ratio near 1 is a sphere. Deviations are "
        "in units of a knob's range.",
        description=_spread_said(own, names),
        charts=charts,
        columns=3 if len(charts) != 4 else 2,
        aspect=0.6,
    )


def _course(report: Report, own: Distribution, values: Sequence[float], title: str) -> Chart:
    marks = _line([s.generation for s in own.history], values, "mean")
    return Chart(generation_axis(report), _log(values), marks, title=title)


def _log(values: Sequence[float]) -> Axis:
    """A range of half a decade at least, or a course would look steep that hardly moves."""
    known = [value for value in values if value > 0]
    low, high = min(known, default=1.0), max(known, default=1.0)
    middle = (low * high) ** 0.5
    return Axis("", "log", low=min(low / 1.15, middle / 1.8), high=max(high * 1.15, middle * 1.8))


def _line(x: Sequence[float], y: Sequence[float], role: Role, label: str = "") -> list[Mark]:
    """A line; of one point a mark."""
    if len(x) == 1:
        return [Points(x, y, role, label, is_large=True)]
    return [Line(x, y, role, label)]


def _deviations(report: Report, own: Distribution, names: Sequence[str]) -> Iterator[Chart]:
    x = [s.generation for s in own.history]
    courses = [[s.deviations[place] for s in own.history] for place in range(len(names))]
    every = [value for course in courses for value in course]
    first = own.first_deviations
    axis = _log([*every, *first])
    if len(names) <= len(SERIES):
        marks = [
            mark
            for role, name, course in zip(SERIES, names, courses, strict=False)
            for mark in _line(x, course, role, name)
        ]
        rules = [Rule(first[0], "baseline", "at the start")] if len(set(first)) == 1 else []
        yield Chart(generation_axis(report), axis, [*rules, *marks], title="sd of each knob")
        return
    for place, (name, course) in enumerate(zip(names, courses, strict=True)):
        begin = [Rule(first[place], "baseline", "sd at the start")] if first else []
        marks = _line(x, course, "series1", "sd of the knob")
        yield Chart(generation_axis(report), axis, [*begin, *marks], title=f"sd of {name}")


def _spread_said(own: Distribution, names: Sequence[str]) -> str:
    first, last = own.history[0], own.history[-1]
    knobs = ", ".join(
        f"{name} {value:.3g}" for name, value in zip(names, last.deviations, strict=False)
    )
    return sentences(
        f"After generation {last.generation}: sigma {last.sigma:.3g}, axis ratio "
        f"{last.axis_ratio:.3g}; after generation {first.generation}: {first.sigma:.3g} and "
        f"{first.axis_ratio:.3g}.",
        f"Standard deviations at last, of each knob's range: {knobs}.",
    )


def correlations(report: Report) -> Plot | None:
    """Which knobs go together; None without a distribution, or with one knob."""
    own = report.distribution
    if own is None or len(report.knobs) < 2:
        return None
    names = [knob.name for knob in report.knobs]
    others = [
        [value if column != row else None for column, value in enumerate(values)]
        for row, values in enumerate(own.correlations)
    ]
    return Plot(
        name="correlations",
        title="Which knobs go together",
        caption=_chance_said(own),
        description=_pairs_said(own, names),
        charts=[Chart(Axis("", categories=names), Axis("", categories=names), [Cells(others)])],
        aspect=max(0.2, min(0.6, 0.055 * len(names))),
    )


def _chance_said(own: Distribution) -> str:
    meaning = (
        "Correlations of the search's distribution at last: 1 means that two knobs rise together, "
        "-1 that one falls as the other rises, along a valley of the score."
    )
    if own.correlation_by_chance is None:
        return meaning
    return (
        f"{meaning} On pure noise the strongest of one search in twenty is beyond "
        f"{own.correlation_by_chance:.2f}: weaker ones say nothing."
    )


def pairs_of(own: Distribution, names: Sequence[str]) -> list[tuple[float, str, str]]:
    """Any two knobs with their correlation, the strongest first."""
    found = [
        (own.correlations[row][column], names[row], names[column])
        for row in range(len(names))
        for column in range(row)
    ]
    return sorted(found, key=lambda pair: -abs(pair[0]))


def _pairs_said(own: Distribution, names: Sequence[str]) -> str:
    found = pairs_of(own, names)
    limit = own.correlation_by_chance
    beyond = "" if limit is None else f"{sum(abs(r) > limit for r, _, _ in found) or 'None'}"
    strongest = listed(f"{one} with {other} {r:.2f}" for r, one, other in found[:MOST_NAMED])
    return sentences(
        f"The strongest of {counted(len(found), 'pair')}: {strongest}.",
        "" if limit is None else f"{beyond} beyond {limit:.2f}, which chance shows.",
    )


def axes(report: Report) -> Plot | None:
    """The principal axes; None without a distribution, or with one knob."""
    own = report.distribution
    if own is None or len(report.knobs) < 2 or not sum(own.eigenvalues):
        return None
    names = [knob.name for knob in report.knobs]
    whole = sum(own.eigenvalues)
    shares = [100 * value / whole for value in own.eigenvalues]
    numbers = [str(place + 1) for place in range(len(shares))]
    bars = Bars([float(place) for place in range(len(shares))], [0.0] * len(shares), shares, "mean")
    loadings = Cells([[axis[row] for axis in own.axes] for row in range(len(names))])
    return Plot(
        name="axes",
        title="Principal axes of the search",
        caption=_axes_caption(own),
        description=_axes_said(own, names, shares),
        charts=[
            Chart(
                Axis("principal axis", categories=numbers),
                Axis("share of the variance (%)", has_zero=True),
                [bars],
                title="How wide it searches along each",
            ),
            Chart(
                Axis("principal axis", categories=numbers),
                Axis("", categories=names),
                [loadings],
                title="What each consists of",
                aspect=max(0.1, min(0.5, 0.04 * len(names))),
            ),
        ],
        aspect=0.22,
    )


def _axes_caption(own: Distribution) -> str:
    """What narrow axes mean, as far as chance does not make them as narrow."""
    meaning = "A search becomes narrow, in the last axes, where the score rises fastest."
    if not own.eigenvalues[-1]:
        return meaning
    condition, chance = own.eigenvalues[0] / own.eigenvalues[-1], own.condition_by_chance
    said = f"The widest variance is {condition:.3g} times the narrowest"
    if chance is None:
        return f"{meaning} {said}."
    found = "this is more" if condition > chance else "this is not: these axes may be chance"
    by_chance = f"on pure noise one search in twenty is beyond {chance:.3g}, {found}"
    return f"{meaning} {said}; {by_chance}."


def _axes_said(own: Distribution, names: Sequence[str], shares: Sequence[float]) -> str:
    return sentences(
        *(
            f"Axis {number}, {share:.3g}% of the variance: {_loadings(axis, names)}."
            for number, (axis, share) in enumerate(zip(own.axes, shares, strict=True), 1)
            if number <= MOST_NAMED
        )
    )


def _loadings(axis: Sequence[float], names: Sequence[str]) -> str:
    """The knobs that make up most of it."""
    ranked = sorted(zip(axis, names, strict=True), key=lambda pair: -abs(pair[0]))
    return listed(f"{name} {value:+.2f}" for value, name in ranked[:4])
