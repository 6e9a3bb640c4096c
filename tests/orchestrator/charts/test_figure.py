"""Plots as files by matplotlib: the same marks, and the same bytes each time."""

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.charts.chart import (
    Axis,
    Bars,
    Cells,
    Chart,
    Intervals,
    Line,
    Mark,
    Note,
    Plot,
    Points,
    Rule,
    Spans,
)
from orchestrator.charts.figure import figure_of, picture
from orchestrator.charts.forms import FORMS, Form, can_draw
from orchestrator.charts.inks import INKS

pytest.importorskip("matplotlib")

HOSTILE = "$\\alpha_0$ </text><script> \x1b[2J\u202e"

AWKWARD = [None, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 0.0, 1e-320]


def plot_of(*marks: Mark, **axis: Any) -> Plot:
    own = Axis("x", **axis)
    return Plot("test", "A test", "", "", (Chart(own, own, marks),))


def drawn(plot: Plot) -> Any:
    """The axes of a plot's only chart."""
    figure = figure_of(plot)
    figure.draw_without_rendering()
    return figure.axes[0]


def test_every_mark_is_drawn(every: Mark) -> None:
    axes = drawn(plot_of(every, low=0, high=10))
    assert axes.lines or axes.collections or axes.patches or axes.texts


@pytest.mark.parametrize("form", FORMS)
def test_the_same_plot_is_the_same_file(form: Form) -> None:
    plot = plot_of(Points([0, 1], [1, 2], "candidate", "points"), Bars([1], [0], [1], "wasted"))
    first = picture(plot, form)
    assert first == picture(plot, form)
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[form])


def test_a_line_goes_through_its_points_in_its_roles_ink() -> None:
    axes = drawn(plot_of(Line([0, 5, 10], [10, None, 5], "mean"), low=0, high=10))
    line = next(own for own in axes.lines if own.get_color() == INKS["mean"].light)
    assert list(line.get_xdata()) == [0, 5, 10]
    assert list(line.get_ydata()) == [10, pytest.approx(math.nan, nan_ok=True), 5]


def test_ticks_are_those_of_the_page(drawing_of: Callable[[Plot], Any]) -> None:
    plot = plot_of(Line([0, 1], [3.1206, 3.1208], "best"))
    axes = drawn(plot)
    written = {text.text for text in drawing_of(plot).all("tick")}
    assert {label.get_text() for label in axes.get_yticklabels()} <= written
    assert axes.get_ylim() == pytest.approx((3.1206 - 0.04 * 3.1206, 3.1208), rel=0.05)


def test_bars_and_spans_are_boxes_at_their_places() -> None:
    marks = Bars([2], [1], [3], "useful", width=1), Spans([5], [4], [9], "ok", height=1)
    bars, spans = drawn(plot_of(*marks, low=0, high=10)).collections
    corners = bars.get_paths()[0].vertices
    assert (corners.min(axis=0).tolist(), corners.max(axis=0).tolist()) == ([1.5, 1], [2.5, 3])
    corners = spans.get_paths()[0].vertices
    assert (corners.min(axis=0).tolist(), corners.max(axis=0).tolist()) == ([4, 4.5], [9, 5.5])


def test_names_are_no_mathematics() -> None:
    chart = Chart(
        Axis(HOSTILE),
        Axis("", categories=[HOSTILE]),
        (Line([0, 1], [0, 0], "best", HOSTILE), Note(0, 0, HOSTILE), Rule(0, "limit", HOSTILE)),
        title=HOSTILE,
    )
    text = picture(Plot("p", HOSTILE, "", "", (chart,)), "svg").decode()
    assert text.count("$\\alpha_0$") >= 6
    assert "<script" not in text


def test_a_script_that_the_font_lacks_is_no_failure() -> None:
    assert picture(plot_of(Line([0, 1], [0, 1], "best", "日本語")))


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_what_is_no_number_is_left_out(scale: str) -> None:
    x, y = AWKWARD, list(reversed(AWKWARD))
    known = [value for value in AWKWARD if value is not None]
    marks: tuple[Mark, ...] = (
        Line(x, y, "best"),
        Points(x, y, "candidate"),
        Bars(x, y, x, "useful"),
        Intervals(x, y, x, y, "winner"),
        Spans([0.0] * 7, known, list(reversed(known)), "ok"),
        *(Rule(value, "limit", "rule") for value in known),
        *(Note(value, value, "note") for value in known),
    )
    assert picture(plot_of(*marks, scale=scale))


def test_small_multiples_share_one_legend() -> None:
    chart = Chart(Axis("x"), Axis("y"), (Line([0, 1], [0, 1], "best", "best so far"),), title="a")
    figure = figure_of(Plot("p", "p", "", "", (chart,) * 3, columns=2))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["best so far"]
    assert len([axes for axes in figure.axes if axes.axison]) == 3


def test_an_empty_chart_says_why() -> None:
    axes = drawn(Plot("p", "p", "", "", (Chart(Axis(""), Axis(""), empty="nothing yet"),)))
    assert [text.get_text() for text in axes.texts] == ["nothing yet"]


def test_a_plot_without_charts_is_an_empty_picture() -> None:
    assert picture(Plot("p", "p", "", "", ()))


def test_no_text_is_outside_of_the_picture() -> None:
    rules = [Rule(3.0 + n / 1e4, "limit", f"the name of rule {n}") for n in range(5)]
    figure = figure_of(plot_of(Line([3, 4], [3, 4], "best", "best"), *rules))
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for text in [*figure.axes[0].texts, *figure.axes[0].get_yticklabels()]:
        box = text.get_window_extent()
        assert box.x0 >= -1
        assert box.x1 <= width + 1
        assert box.y0 >= -1
        assert box.y1 <= height + 1


def test_heat_cells_have_their_numbers() -> None:
    names = Axis("", categories=["a", "b"])
    chart = Chart(names, names, (Cells([[1, -0.5], [None, 0.25]]),))
    axes = drawn(Plot("p", "p", "", "", (chart,)))
    assert [text.get_text() for text in axes.texts] == ["1.00", "−0.50", "–", "0.25"]  # noqa: RUF001
    assert axes.get_ylim() == (1.5, -0.5)


def test_global_settings_are_left_as_they_are() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    picture(plot_of(Line([0, 1], [0, 1], "best")), "pdf")
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_it_is_known_before_one_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_draw()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError):
        picture(plot_of())


def test_nothing_heavy_is_imported_before_a_file_is_drawn() -> None:
    code = "import orchestrator.charts.figure, orchestrator.charts.svg, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"matplotlib", "numpy", "torch", "cma"} & set(done.stdout.split())
