"""Runs side by side as plots: gains on fresh seeds, how each search went, what each recommends."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from statistics import median

from budgets.statistics.comparison import better
from budgets.words import counted, percent
from orchestrator.charts.chart import (
    SERIES,
    Axis,
    Chart,
    Line,
    Mark,
    Plot,
    Points,
    Role,
    Rule,
)
from orchestrator.compare.model import Compared, Side, Step
from orchestrator.report.plots.gains import SURE, in_percent, in_words, intervals
from orchestrator.report.plots.words import columns_for, device_hours_unit, sentences

UNLIKE = 5.0
"""How many times as far as half of the runs one may reach, and not flatten them in one chart."""

ROW_ASPECT, LEAST_ASPECT = 0.045, 0.12

_RANGE = Axis(
    "place in the knob's range", low=-0.03, high=1.03,
    ticks=((0.0, "low end"), (0.25, "25%"), (0.5, "50%"), (0.75, "75%"), (1.0, "high end")),
)  # fmt: skip

APART = 0.13
"""Between runs in a knob's row, in rows."""


def plots(compared: Compared) -> tuple[Plot, ...]:
    """Those that these runs have something to show in."""
    found = (gains(compared), progress(compared), knobs(compared))
    return tuple(plot for plot in found if plot is not None)


def gains(compared: Compared) -> Plot | None:
    """Each winner's gain over its own baseline; None where no run has compared any."""
    runs = compared.runs
    if not any(run.gain is not None and run.gain.mean is not None for run in runs):
        return None
    marks: list[Mark] = [Rule(0.0, "baseline", "its own baseline", axis="x", is_dashed=False)]
    asked = {run.asked for run in runs if run.asked is not None}
    if len(asked) == 1:
        least = asked.pop()
        marks.append(Rule(100 * least, "limit", f"asked of a Go: {percent(least)}", axis="x"))
    own = [run.gain for run in runs]
    marks += intervals(own, "winner", SURE[True], is_sure=True)
    marks += intervals(own, "series1", SURE[False], is_sure=False)
    rows = Axis("", categories=[_row_name(run) for run in runs])
    return Plot(
        name="gains",
        title="Gains on fresh seeds",
        caption="Each run's winner against that run's own baseline, on seeds that were "
        "used for no selection. Filled: the interval leaves 0 out, so that the gain, or the loss, "
        "is beyond chance. n: seeds.",
        description=sentences(*map(_gain_said, runs)),
        charts=(Chart(Axis("gain over its own baseline (%), right is better"), rows, marks),),
        aspect=max(LEAST_ASPECT, 0.05 + ROW_ASPECT * len(runs)),
    )


def _row_name(run: Side) -> str:
    if run.gain is None or run.gain.mean is None:
        return f"{run.label}: not compared"
    return f"{run.label}, n = {run.gain.pairs}"


def _gain_said(run: Side) -> str:
    own = run.gain
    if own is None or own.mean is None:
        return f"{run.name}: nothing compared on fresh seeds."
    return f"{run.name}: {in_words(own)} on {counted(own.pairs, 'seed')}."


def progress(compared: Compared) -> Plot | None:
    """Best and mean so far over each one's own baseline; None where no run can show it."""
    own = [run for run in compared.runs if run.steps]
    if not own:
        return None
    is_together = len(own) <= len(SERIES) and _are_alike(own)
    missing = [run.name for run in compared.runs if not run.steps]
    lacking = (
        f"Not shown, no search, or without a baseline: {', '.join(missing)}." if missing else ""
    )
    return Plot(
        name="progress",
        title="How each search went",
        caption=sentences(
            "Scores over the run's own baseline. The best so far grows with luck as well: gains on "
            "fresh seeds decide.",
            lacking,
        ),
        description=sentences(*map(_progress_said, own)),
        charts=_together(own) if is_together else list(_apart(compared, own)),
        columns=2 if is_together else columns_for(len(own)),
        aspect=0.6,
    )


def _are_alike(runs: Sequence[Side]) -> bool:
    reaches = [max((abs(step.best or 0.0) for step in run.steps), default=0.0) for run in runs]
    return max(reaches) <= UNLIKE * median(reaches)


def _together(runs: Sequence[Side]) -> list[Chart]:
    """Against evaluations and device-hours, best above mean."""
    unit = device_hours_unit(max(run.steps[-1].device_hours for run in runs))
    axes: list[tuple[Axis, Callable[[Step], float]]] = [
        (Axis("evaluations of the search", is_whole=True, has_zero=True), _evaluations),
        (Axis(unit.name, has_zero=True), lambda step: unit.of(step.device_hours)),
    ]
    series: list[tuple[str, Callable[[Step], float | None]]] = [
        ("Best so far", _best),
        ("Mean of each generation", _mean),
    ]
    return [
        Chart(x, _gain_axis(runs, value), list(_lines(runs, place, value)), title=title)
        for title, value in series
        for x, place in axes
    ]


def _lines(
    runs: Sequence[Side],
    place: Callable[[Step], float],
    value: Callable[[Step], float | None],
) -> Iterator[Mark]:
    yield Rule(0.0, "baseline", "its own baseline", is_dashed=False)
    for role, run in zip(SERIES, runs, strict=False):
        x = [place(step) for step in run.steps]
        yield Line(x, [value(step) for step in run.steps], role, run.label)


def _apart(compared: Compared, runs: Sequence[Side]) -> Iterator[Chart]:
    """One chart a run; of one height in gain are those whose scores can be compared."""
    for run in runs:
        number = compared.runs.index(run)
        group = next(group for group in compared.scores.groups if number in group)
        yield Chart(
            Axis("evaluations", is_whole=True, has_zero=True),
            _gain_axis([compared.runs[place] for place in group], _best, _mean),
            [
                Rule(0.0, "baseline", "its own baseline", is_dashed=False),
                Line(_places(run), list(map(_mean, run.steps)), "mean", "mean of each generation"),
                Line(_places(run), list(map(_best, run.steps)), "best", "best so far"),
            ],
            title=run.label,
        )


def _gain_axis(runs: Sequence[Side], *values: Callable[[Step], float | None]) -> Axis:
    """From well below the bulk of them: a first generation far off would flatten all others."""
    every = (value(step) for run in runs for step in run.steps for value in values)
    found = sorted(own for own in every if own is not None)
    if not found:
        return Axis("gain (%)")
    upper = found[-1]
    low = max(found[0], found[len(found) // 10] - (upper - found[len(found) // 10]))
    room = 0.05 * (upper - min(low, 0.0)) or 1.0
    return Axis("gain (%)", low=min(low, 0.0) - room, high=max(upper, 0.0) + room)


def _places(run: Side) -> list[float]:
    return [_evaluations(step) for step in run.steps]


def _evaluations(step: Step) -> float:
    return float(step.evaluations)


def _best(step: Step) -> float | None:
    return in_percent(step.best)


def _mean(step: Step) -> float | None:
    return in_percent(step.mean)


def _progress_said(run: Side) -> str:
    last = run.steps[-1]
    if last.best is None:
        return f"{run.name}: no score after {counted(last.evaluations, 'evaluation')}."
    return (
        f"{run.name}: best so far {better(last.best)} than its baseline after "
        f"{counted(last.evaluations, 'evaluation')}."
    )


def knobs(compared: Compared) -> Plot | None:
    """Where each run would have each knob; None of too many runs, or where nothing is recommended.

    A knob that a run did not search has no place of that run.
    """
    runs = [run for run in compared.runs if run.recommends]
    if not runs or len(runs) > len(SERIES):
        return None
    names = list(dict.fromkeys(knob.name for run in runs for knob in run.knobs))
    row = {name: place for place, name in enumerate(names)}
    marks = [_baselines(runs, row)]
    for number, (role, run) in enumerate(zip(SERIES, runs, strict=False)):
        offset = (number - (len(runs) - 1) / 2) * APART
        marks.append(_recommended(run, role, row, offset))
    return Plot(
        name="knobs",
        title="What each run recommends",
        caption="Each knob at its place in its range, from the low end to the high one.",
        description=sentences(*map(_knobs_said, runs)),
        charts=(Chart(_RANGE, Axis("", categories=names), marks),),
        aspect=max(LEAST_ASPECT, 0.05 + ROW_ASPECT * len(names)),
    )


def _baselines(runs: Sequence[Side], row: dict[str, int]) -> Points:
    every = chain.from_iterable(run.knobs for run in runs)
    places = dict.fromkeys((knob.baseline_unit, float(row[knob.name])) for knob in every)
    return Points(
        [unit for unit, _ in places], [at for _, at in places], "baseline", "baseline", "square"
    )


def _recommended(run: Side, role: Role, row: dict[str, int], offset: float) -> Points:
    own = [knob for knob in run.knobs if knob.recommended_unit is not None]
    return Points(
        [knob.recommended_unit for knob in own],
        [row[knob.name] + offset for knob in own],
        role,
        run.label,
        tips=[f"{run.name}: {knob.name} {knob.recommended:.4g}" for knob in own],
        is_large=True,
    )


def _knobs_said(run: Side) -> str:
    values = ", ".join(
        f"{knob.name} {knob.recommended:.4g}" for knob in run.knobs if knob.recommended is not None
    )
    return f"{run.name}: {values}."
