"""One legend for a whole plot."""

from collections.abc import Callable
from typing import Any

from orchestrator.charts.chart import Axis, Band, Bars, Chart, Line, Mark, Plot, Points, Rule
from orchestrator.charts.legend import LINE, entries

AXIS = Axis("x")


def plot_of(*charts: tuple[Mark, ...], columns: int = 1) -> Plot:
    return Plot("p", "p", "", "", tuple(Chart(AXIS, AXIS, own) for own in charts), columns)


def labels(plot: Plot) -> list[str]:
    return [entry.label for entry in entries(plot)]


def test_a_name_is_in_the_legend_once() -> None:
    own = (Line([0], [1], "best", "best"), Points([0], [1], "mean", "mean"), Line([0], [1], "luck"))
    assert labels(plot_of(own, own)) == ["best", "mean"]


def test_a_name_of_two_kinds_of_mark_has_both_in_its_sample() -> None:
    own = (Line([0], [1], "best", "best"), Points([0], [1], "best", "best"))
    (entry,) = entries(plot_of(own, own))
    assert len(entry.marks) == 2


def test_rules_are_named_beside_a_chart_and_in_the_legend_of_small_multiples() -> None:
    own = (Line([0, 1], [1, 2], "best", "best"), Rule(1, "baseline", "baseline"))
    assert labels(plot_of(own)) == ["best"]
    assert labels(plot_of(own, own, columns=2)) == ["best", "baseline"]


def test_what_an_empty_chart_would_name_is_not_there() -> None:
    chart = Chart(AXIS, AXIS, (Line([0], [1], "best", "best"),), empty="nothing yet")
    assert labels(Plot("p", "p", "", "", (chart,))) == []


def test_a_sample_looks_as_its_mark_does(drawing_of: Callable[[Plot], Any]) -> None:
    marks = (
        Line([0, 1], [0, 1], "mean", "mean"),
        Points([0], [1], "failed", "failed"),
        Bars([0], [0], [1], "wasted", "wasted"),
        Band([0, 1], [0, 1], [1, 2], "baseline", "noise"),
    )
    drawing = drawing_of(plot_of(marks))
    samples = [own.get("class") for own in drawing.root.findall("{*}path")]
    assert samples == [
        "line dash-own role-mean",
        "cross role-failed",
        "textured role-wasted",
        "band role-baseline",
    ]


def test_a_long_legend_wraps_and_pushes_the_chart_down(
    drawing_of: Callable[[Plot], Any],
) -> None:
    def top(count: int) -> float:
        names = [f"the name of a line, number {n}" for n in range(count)]
        marks = tuple(Line([0, 1], [0, 1], "best", name) for name in names)
        return float(drawing_of(plot_of(marks)).frame()[1])

    assert top(3) == top(1)
    assert top(9) - top(3) == 2 * LINE
