"""Each knob by itself: its path over generations, and what the score says of it."""

from collections.abc import Iterator, Sequence
from statistics import quantiles

from budgets.words import counted
from orchestrator.charts.chart import (
    Axis,
    Band,
    Chart,
    Intervals,
    Line,
    Mark,
    Plot,
    Points,
    Rule,
)
from orchestrator.report.model import KnobView, Marginal, Report
from orchestrator.report.plots.candidates import FEW, Candidate, candidates, generation_axis
from orchestrator.report.plots.scales import axis_of, in_words, knob_of
from orchestrator.report.plots.words import columns_for, sentences, thinned

MOST_POINTS = 4000
"""Of candidates in all charts of one plot together: more would make a page of megabytes."""


def paths(report: Report) -> Plot | None:
    """Where the search looked for each knob; None without a search or a candidate of it."""
    own = candidates(report)
    if not own or not report.knobs:
        return None
    shown = thinned(own, MOST_POINTS // len(report.knobs))
    left_out = len(own) - len(shown)
    return Plot(
        name="paths",
        title="Each knob's path",
        caption=sentences(
            "The line is the search's favourite, the band one standard deviation about it. A band "
            "that narrows away from the baseline has found something; one that stays wide has "
            "not, or the knob does not matter.",
            f"Of the candidates, {len(shown)} of {len(own)} are shown." if left_out else "",
        ),
        description=sentences(*(_path_said(report, view) for view in report.knobs)),
        charts=[_path(report, shown, place) for place in range(len(report.knobs))],
        columns=columns_for(len(report.knobs)),
        aspect=0.6,
    )


def _path(report: Report, own: Sequence[Candidate], place: int) -> Chart:
    view = report.knobs[place]
    is_recommended = view.recommended_unit is not None
    beyond = max(0.8, len(report.generations) / 15) if is_recommended else 0.0
    axis = generation_axis(report, beyond=beyond)
    marks: list[Mark] = [
        Points(
            [c.place for c in own],
            [c.point[place] for c in own],
            "candidate",
            "candidate",
            is_faint=len(own) > FEW,
        ),
        *_favourites(report, place),
        Rule(view.baseline_unit, "baseline", "baseline"),
    ]
    if is_recommended:
        at = (axis.high or 0.0) - beyond / 2
        tip = f"recommended: {in_words(view.recommended or 0.0)}"
        marks.append(
            Points(
                [at],
                [view.recommended_unit],
                "winner",
                "recommended",
                "diamond",
                is_large=True,
                tips=[tip],
            )
        )
    return Chart(axis, axis_of(view), marks, title=view.name)


def _favourites(report: Report, place: int) -> Iterator[Mark]:
    """The search's favourite, with one standard deviation where that is known."""
    own = report.distribution
    if own is not None and own.history:
        x = [s.generation for s in own.history]
        y = [s.favourite[place] for s in own.history]
        reach = [s.deviations[place] for s in own.history]
        low = [max(0.0, at - sd) for at, sd in zip(y, reach, strict=True)]
        high = [min(1.0, at + sd) for at, sd in zip(y, reach, strict=True)]
        if len(x) == 1:
            yield Intervals(x, low, y, high, "mean", "favourite ± 1 sd", is_horizontal=False)
            return
        yield Band(x, low, high, "mean", "± 1 sd")
    else:
        known = [(g.number, g.favourite[place]) for g in report.generations if g.favourite]
        x, y = [number for number, _ in known], [at for _, at in known]
        if len(x) == 1:
            yield Points(x, y, "mean", "favourite", is_large=True)
            return
    if x:
        yield Line(x, y, "mean", "favourite")


def _path_said(report: Report, view: KnobView) -> str:
    place = report.knobs.index(view)
    last = next((g for g in reversed(report.generations) if g.favourite), None)
    favourite = ""
    if last is not None and last.favourite is not None:
        at = in_words(knob_of(view).decode(min(max(last.favourite[place], 0.0), 1.0)))
        favourite = f", favourite after generation {last.number} {at}"
    chosen = "" if view.recommended is None else f", recommended {in_words(view.recommended)}"
    return (
        f"{view.name}: baseline {in_words(view.baseline)} in {in_words(view.low)} to "
        f"{in_words(view.high)}{favourite}{chosen}."
    )


def marginals(report: Report) -> Plot | None:
    """What the score says of each knob, all else aside; None where too little is paid."""
    own = [one for one in report.marginals if one.units]
    if not own:
        return None
    views = {view.name: view for view in report.knobs}
    axis = _excess_axis(own)
    return Plot(
        name="marginals",
        title="Each knob's marginal effect",
        caption="A candidate's score less its generation's mean against where it lay in the "
        "knob's range, lower is better; diamonds are means of as many candidates each, with their "
        "standard errors. No experiment: the search chose where to look, and knobs move together. "
        f"The regression that decides takes the other knobs into account: {_stand(own)}.",
        description=sentences(*map(_marginal_said, own)),
        charts=[_marginal(one, views[one.knob], axis) for one in own if one.knob in views],
        columns=columns_for(len(own)),
        aspect=0.6,
    )


def _stand(own: Sequence[Marginal]) -> str:
    """What it says of all of them together."""
    if all(one.stands is None for one in own):
        return "there are too few evaluations for it"
    count = sum(bool(one.stands) for one in own)
    others = "" if count in (0, len(own)) else ", the others may be chance"
    stand = "stands above its" if count < 2 else "stand above their"
    return f"{count or 'none'} of {counted(len(own), 'knob')} {stand} error{others}"


def _excess_axis(own: Sequence[Marginal]) -> Axis:
    """The same of all charts, without the few that would flatten the means."""
    every = [value for one in own for value in one.excess]
    bins = [
        mean + side * error
        for one in own
        for mean, error in zip(one.bin_means, one.bin_errors, strict=True)
        for side in (-1, 1)
    ]
    low, high = min([*every, 0.0]), max([*every, 0.0])
    if len(every) > 39:
        low, *_, high = quantiles(every, n=20)
    low, high = min([low, *bins]), max([high, *bins])
    room = 0.08 * (high - low) or 1.0
    return Axis("excess score", low=low - room, high=high + room)


def _marginal(one: Marginal, view: KnobView, axis: Axis) -> Chart:
    low, high = axis.low or 0.0, axis.high or 0.0
    pairs = [p for p in zip(one.units, one.excess, strict=True) if low <= p[1] <= high]
    shown = thinned(pairs, MOST_POINTS // 10)
    marks: list[Mark] = [
        Points(
            [x for x, _ in shown],
            [y for _, y in shown],
            "candidate",
            "candidate",
            is_faint=len(pairs) > FEW,
        ),
        Rule(0.0, "muted", is_dashed=False),
        Rule(view.baseline_unit, "baseline", "baseline", axis="x"),
    ]
    if view.recommended_unit is not None:
        marks.append(Rule(view.recommended_unit, "winner", "recommended", axis="x"))
    if one.bin_units:
        marks.append(
            Intervals(
                one.bin_units,
                [m - e for m, e in zip(one.bin_means, one.bin_errors, strict=True)],
                one.bin_means,
                [m + e for m, e in zip(one.bin_means, one.bin_errors, strict=True)],
                "mean",
                "mean ± its standard error",
                is_horizontal=False,
            )
        )
    return Chart(
        axis_of(view), axis, marks, title=f"{one.knob}: stands" if one.stands else one.knob
    )


def _standing(one: Marginal) -> str:
    if one.stands is None:
        return "too few evaluations to say"
    return "stands" if one.stands else "may be chance"


def _marginal_said(one: Marginal) -> str:
    if one.slope is None or one.slope_error is None:
        return f"{one.knob}: {_standing(one)}."
    slope = f"{one.slope:.3g} ± {one.slope_error:.3g} per standard deviation"
    return f"{one.knob}: {slope}, {_standing(one)}."
