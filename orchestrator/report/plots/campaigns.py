"""A campaign's conditions on all seeds, and its effects with their intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from budgets.campaign.effects import CampaignReport, ConditionRow
from budgets.campaign.names import shortened
from budgets.campaign.words import in_words
from budgets.words import counted, number
from orchestrator.charts.chart import (
    Axis,
    Chart,
    Intervals,
    Mark,
    Note,
    Plot,
    Points,
    Rule,
    Stripe,
)
from orchestrator.report.bars import Bar, bars_of, bars_title
from orchestrator.report.model import Report
from orchestrator.report.plots.words import sentences

NAME_WIDTH, OF_WIDTH = 36, 30
"""Characters of the name of a row, and of a name below an axis."""

MOST_LINES = 120
"""More would be a picture that no viewer opens."""

MOST_SAID = 24
"""Conditions and differences that a description puts into words."""


def conditions(report: Report) -> Plot | None:
    """Conditions over seeds; None of what is no campaign."""
    own = report.budget.campaign
    return None if own is None else conditions_of(own, report.identity.score)


def effects(report: Report) -> Plot | None:
    """Effects, or conditions against their controls; None without a campaign or any of them."""
    own = report.budget.campaign
    return None if own is None or not bars_of(own) else effects_of(own, report.identity.score)


def conditions_of(report: CampaignReport, unit: str) -> Plot:
    """A line for each condition: the score on each seed, the mean and its interval."""
    chart = replace(_conditions_chart(report, unit), title="")
    return Plot(
        name="conditions",
        title=heading(report),
        caption="Scores over seeds, lower is better. Seeds are shared, so a difference may be "
        "sure although intervals overlap: see the effects.",
        description=sentences(*map(_row_said, report.rows[:MOST_SAID])),
        charts=[chart],
        aspect=_aspect(chart),
    )


def effects_of(report: CampaignReport, unit: str) -> Plot:
    """A forest of differences."""
    chart = replace(_effects_chart(report, unit), title="")
    return Plot(
        name="effects",
        title=bars_title(report),
        caption="Each seed gives one difference; filled is what chance does not explain, all of "
        "them considered together.",
        description=sentences(
            *(f"{bar.name}: {in_words(bar.difference)}." for bar in bars_of(report)[:MOST_SAID])
        ),
        charts=[chart],
        aspect=_aspect(chart),
    )


def both_of(report: CampaignReport, unit: str) -> Plot:
    """Conditions above, effects below, as `effects.png` shows them."""
    left, right = conditions_of(report, unit), effects_of(report, unit)
    charts = [_conditions_chart(report, unit), _effects_chart(report, unit)]
    charts = [replace(chart, aspect=_aspect(chart)) for chart in charts]
    return Plot(
        name="effects",
        title=heading(report),
        caption="",
        description=sentences(left.description, right.description),
        charts=charts,
    )


def heading(report: CampaignReport) -> str:
    """`sizes: 6 conditions, 3 seeds`."""
    seeds = "one seed" if len(report.seeds) == 1 else f"{len(report.seeds)} seeds"
    shown = f" ({MOST_LINES} shown)" if len(report.rows) > MOST_LINES else ""
    title = f"{report.name}: {len(report.rows)} conditions{shown}, {seeds}"
    if not report.is_over:
        return f"{title} ({report.evaluations - report.unsettled} of {report.evaluations} settled)"
    return title


def _aspect(chart: Chart) -> float:
    return 0.04 + 0.035 * len(chart.y.categories)


def _conditions_chart(report: CampaignReport, unit: str) -> Chart:
    rows = report.rows[:MOST_LINES]
    missing = [_missing(row) for row in rows]
    width = NAME_WIDTH - max(map(len, missing), default=0)
    short = shortened([row.name for row in rows], max(width, NAME_WIDTH // 2))
    names = [name + own for name, own in zip(short, missing, strict=True)]
    marks = [*_control_marks(report), *_score_marks(report, rows)]
    has_score = any(row.healthy for row in rows)
    return Chart(
        Axis(f"{unit} (lower is better)"),
        Axis("", categories=names),
        marks,
        title="Conditions: scores over seeds",
        empty="" if has_score else "no score yet",
    )


def _missing(row: ConditionRow) -> str:
    """` (2 oom)`: cells of a condition that gave no score."""
    others = [f"{count} {status}" for status, count in row.statuses.items() if status != "ok"]
    return f" ({', '.join(others)})" if others else ""


def _control_marks(report: CampaignReport) -> Iterator[Mark]:
    """The first control's mean and interval, behind them all."""
    own = next((row for row in report.rows if row.is_control and row.healthy), None)
    if own is None or own.mean is None:
        return
    label = shortened([own.name], OF_WIDTH)[0]
    if own.lower is not None and own.upper is not None:
        yield Stripe(own.lower, own.upper, "baseline", f"{label}, interval", axis="x")
        label = ""
    yield Rule(own.mean, "baseline", label, axis="x")


def _score_marks(report: CampaignReport, rows: Sequence[ConditionRow]) -> Iterator[Mark]:
    """Each seed's score above the middle of its line, mean and interval below it."""
    scores = [
        (score, place - 0.18, f"{row.name}, seed {seed}: {number(score)}")
        for place, row in enumerate(rows)
        for seed, score in zip(report.seeds, row.scores, strict=True)
        if score is not None
    ]
    yield Points(
        [score for score, _, _ in scores],
        [place for _, place, _ in scores],
        "candidate",
        "score of one seed",
        tips=[tip for _, _, tip in scores],
    )
    means = [(place, row) for place, row in enumerate(rows) if row.lower is not None]
    if means:
        yield Intervals(
            [place + 0.12 for place, _ in means],
            [row.lower for _, row in means],
            [row.mean for _, row in means],
            [row.upper for _, row in means],
            "mean",
            f"mean, {1 - report.level:.0%} interval",
        )


def _effects_chart(report: CampaignReport, unit: str) -> Chart:
    bars = bars_of(report)[:MOST_LINES]
    is_relative = all(bar.difference.percent is not None for bar in bars if bar.difference.seeds)
    known = any(bar.difference.seeds for bar in bars)
    of = f"% of the mean of {_whose(bars)}" if bars and is_relative else unit
    why = "" if known else "nothing to compare yet"
    return Chart(
        Axis(f"difference ({of}), left is better", has_zero=True),
        Axis("", categories=shortened([bar.name for bar in bars], NAME_WIDTH)),
        [Rule(0.0, "muted", axis="x", is_dashed=False), *_forest(report, bars, is_relative)],
        title=bars_title(report),
        empty=why if bars else "no factor and no control to compare by",
    )


def _forest(report: CampaignReport, bars: Sequence[Bar], is_relative: bool) -> Iterator[Mark]:
    """Each difference with its interval; filled, where it is beyond chance."""
    values = [bar.values(is_relative=is_relative) for bar in bars]
    for is_found in (True, False):
        own = [
            (place, value)
            for place, (bar, value) in enumerate(zip(bars, values, strict=True))
            if value is not None and bar.difference.is_found == is_found
        ]
        if own:
            yield Intervals(
                [place for place, _ in own],
                [low for _, (_, low, _) in own],
                [mean for _, (mean, _, _) in own],
                [high for _, (_, _, high) in own],
                "winner" if is_found else "series1",
                "beyond chance" if is_found else _not_shown(report),
                is_filled=is_found,
            )
    for place, value in enumerate(values):
        if value is None:
            yield Note(0.0, float(place), "not estimated")


def _whose(bars: Sequence[Bar]) -> str:
    """What the percents are of."""
    names = list(dict.fromkeys(bar.reference for bar in bars))
    return shortened(names, OF_WIDTH)[0] if len(names) == 1 else "the control"


def _not_shown(report: CampaignReport) -> str:
    if len(report.seeds) == 1:
        return "one seed: no interval"
    return "may be chance" if report.is_over else "not judged yet"


def _row_said(row: ConditionRow) -> str:
    sure = ""
    if row.lower is not None and row.upper is not None:
        sure = f" ({number(row.lower)} to {number(row.upper)})"
    mean = "no score" if row.mean is None else f"mean {number(row.mean)}{sure}"
    return f"{row.name}: {mean} on {counted(row.healthy, 'seed')}{_missing(row)}."
