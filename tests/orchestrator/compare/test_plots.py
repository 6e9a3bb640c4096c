"""Runs side by side as plots."""

from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from budgets.statistics.comparison import Gain
from orchestrator.charts.chart import Intervals, Line, Points
from orchestrator.charts.svg import svg
from orchestrator.compare.model import Compared, Side, Step
from orchestrator.compare.plots import gains, knobs, plots, progress

MakeSide = Callable[..., Side]
MakeGain = Callable[..., Gain]
SideBySide = Callable[..., Compared]


def marks(plot: Any, kind: type) -> list[Any]:
    return [mark for chart in plot.charts for mark in chart.marks if isinstance(mark, kind)]


def test_a_gain_beyond_chance_is_filled_and_others_are_hollow(
    make_side: MakeSide, make_gain: MakeGain, side_by_side: SideBySide
) -> None:
    plot = gains(side_by_side(
        make_side("a"), make_side("b", gain=make_gain(0.004)), make_side("c", gain=None),
        make_side("d", gain=make_gain(-0.03)),
    ))  # fmt: skip
    assert plot is not None
    filled, hollow = marks(plot, Intervals)
    assert (list(filled.at), list(filled.mean), filled.is_filled) == ([0.0, 3.0], [5.0, -3.0], True)
    assert (list(hollow.at), hollow.is_filled) == ([1.0], False)
    assert list(plot.charts[0].y.categories)[:3] == ["a, n = 8", "b, n = 8", "c: not compared"]
    assert "a: 5% better (gain +4 to +6%) on 8 seeds." in plot.description


def test_without_any_comparison_there_is_no_plot_of_gains(
    make_side: MakeSide, make_gain: MakeGain, side_by_side: SideBySide
) -> None:
    assert (
        gains(side_by_side(make_side("a", gain=None), make_side("b", gain=make_gain(None)))) is None
    )


def test_few_searches_share_their_charts(make_side: MakeSide, side_by_side: SideBySide) -> None:
    plot = progress(side_by_side(make_side("a"), make_side("b")))
    assert plot is not None
    assert [chart.title for chart in plot.charts] == [
        *["Best so far"] * 2,
        *["Mean of each generation"] * 2,
    ]
    by_evaluations, by_hours, mean, _ = (
        [mark for mark in chart.marks if isinstance(mark, Line)] for chart in plot.charts
    )
    assert list(by_evaluations[0].x) == [8, 16, 24]
    assert list(by_evaluations[0].y) == pytest.approx([1, 2, 3])
    assert list(mean[0].y) == pytest.approx([0.5, 1, 1.5])
    assert len({line.role for line in by_evaluations}) == 2
    assert plot.charts[1].x.label == "device-minutes"
    assert list(by_hours[0].x) == pytest.approx([6, 12, 18])


def test_many_searches_have_a_chart_each(make_side: MakeSide, side_by_side: SideBySide) -> None:
    plot = progress(side_by_side(*(make_side(f"run {n}") for n in range(7))))
    assert plot is not None
    assert [chart.title for chart in plot.charts] == [f"run {n}" for n in range(7)]
    assert len({(chart.y.low, chart.y.high) for chart in plot.charts}) == 1


def test_a_search_of_another_size_of_gain_flattens_no_other(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    steep = (Step(evaluations=8, device_hours=0.1, best=0.9, mean=0.8),)
    runs = (make_side("a"), make_side("b"), make_side("c", steps=steep))
    plot = progress(side_by_side(*runs, groups=((0, 1), (2,))))
    assert plot is not None
    heights = [chart.y.high or 0.0 for chart in plot.charts]
    assert heights[0] == heights[1] < 4
    assert heights[2] > 90


def test_one_far_off_generation_does_not_decide_the_height(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    steps = tuple(
        Step(evaluations=n, device_hours=n, best=0.02, mean=-50.0 if n == 1 else 0.01)
        for n in range(1, 21)
    )
    plot = progress(side_by_side(make_side("a", steps=steps), make_side("b", steps=steps)))
    assert plot is not None
    assert plot.charts[2].y.low is not None
    assert plot.charts[2].y.low > -5


def test_who_has_no_baseline_is_named(make_side: MakeSide, side_by_side: SideBySide) -> None:
    plot = progress(side_by_side(make_side("a"), make_side("b", steps=())))
    assert plot is not None
    assert "b" in plot.caption
    assert progress(side_by_side(make_side("a", steps=()))) is None


def test_recommendations_are_at_their_places_in_each_knobs_row(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    own = make_side("b").knobs[0]
    other = own.model_copy(update={"name": "y", "recommended_unit": 0.75})
    plot = knobs(side_by_side(make_side("a"), make_side("b", knobs=(own, other))))
    assert plot is not None
    baseline, first, second = marks(plot, Points)
    assert list(zip(baseline.x, baseline.y, strict=True)) == [(0.5, 0.0), (0.5, 1.0)]
    assert list(first.x) == [0.25]
    assert list(second.x) == [0.25, 0.75]
    assert [round(place) for place in second.y] == [0, 1]
    assert first.y[0] != second.y[0]


def test_where_nothing_is_recommended_there_is_no_plot_of_knobs(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    none = (
        make_side("a").knobs[0].model_copy(update={"recommended": None, "recommended_unit": None})
    )
    assert knobs(side_by_side(make_side("a", knobs=(none,)), make_side("b", knobs=()))) is None
    assert knobs(side_by_side(*(make_side(f"run {n}") for n in range(7)))) is None


def test_every_plot_is_drawn(compared: Compared) -> None:
    found = plots(compared)
    assert [plot.name for plot in found] == ["gains", "progress", "knobs"]
    for plot in found:
        fromstring(svg(plot))  # noqa: S314 - our own
        assert plot.caption
        assert plot.description
