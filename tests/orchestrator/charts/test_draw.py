"""Every mark at its place: frames from 0 to 10 along both axes, and what is found in them."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.charts.chart import (
    Axis,
    Band,
    Bars,
    Cells,
    Intervals,
    Line,
    Note,
    Points,
    Rule,
    Shape,
    Spans,
    Stripe,
)

Draw = Callable[..., Any]
Place = tuple[float, float]


def at(drawing: Any, x: float, y: float, low: float = 0, high: float = 10) -> Place:
    """Where (x, y) must be."""
    left, top, right, bottom = drawing.frame()
    share = (y - low) / (high - low)
    return left + x / 10 * (right - left), bottom - share * (bottom - top)


def near(place: Place) -> Any:
    return pytest.approx(place, abs=0.11)


def corners(drawing: Any, *classes: str) -> list[tuple[Place, Place]]:
    """The left upper and right lower corner of each box."""
    found = []
    for run in drawing.runs(*classes):
        xs, ys = [x for x, _ in run], [y for _, y in run]
        found.append(((min(xs), min(ys)), (max(xs), max(ys))))
    return found


def test_a_line_goes_through_its_points(draw: Draw) -> None:
    drawing = draw(Line([0, 5, 10], [10, 0, 5], "best"))
    (run,) = drawing.runs("line", "role-best")
    assert run == [near(at(drawing, *own)) for own in ((0, 10), (5, 0), (10, 5))]


def test_many_short_steps_do_not_add_up_to_an_error(draw: Draw) -> None:
    x = [n / 97 for n in range(970)]
    drawing = draw(Line(x, x, "best"))
    (run,) = drawing.runs("line", "role-best")
    assert run[-1] == near(at(drawing, x[-1], x[-1]))


def test_a_line_is_broken_where_a_number_is_missing(draw: Draw) -> None:
    drawing = draw(Line([0, 1, 2, 3, 4], [1, 1, None, 1, 1], "best"))
    assert [len(run) for run in drawing.runs("line", "role-best")] == [2, 2]


def test_a_point_alone_between_breaks_is_seen(draw: Draw) -> None:
    drawing = draw(Line([0, 1, 2], [None, 1, None], "best"))
    assert drawing.runs("dot", "role-best")[0][0] == near(at(drawing, 1, 1))


def test_steps_hold_each_value_until_the_next(draw: Draw) -> None:
    drawing = draw(Line([0, 4, 10], [2, 6, 8], "luck", is_step=True))
    (run,) = drawing.runs("line", "role-luck")
    expected = [(0, 2), (4, 2), (4, 6), (10, 6), (10, 8)]
    assert run == [near(at(drawing, *own)) for own in expected]


def test_a_long_curve_keeps_its_highest_and_lowest_values(draw: Draw) -> None:
    y = [5.0] * 20_000
    y[7_000], y[13_001] = 9.0, 1.0
    drawing = draw(Line([n / 2000 for n in range(20_000)], y, "best"))
    heights = {height for run in drawing.runs("line", "role-best") for _, height in run}
    for value in (9, 1):
        assert any(
            height == pytest.approx(at(drawing, 0, value)[1], abs=0.11) for height in heights
        )


def test_a_band_is_between_its_ends(draw: Draw) -> None:
    drawing = draw(Band([0, 10], [1, 2], [3, 4], "baseline"))
    (run,) = drawing.runs("band")
    expected = [(0, 3), (10, 4), (10, 2), (0, 1)]
    assert run == [near(at(drawing, *own)) for own in expected]


def test_a_band_is_broken_where_either_end_is_missing(draw: Draw) -> None:
    low, high = [1, 1, None, 1, 1, 1], [2, 2, 2, 2, float("nan"), 2]
    assert len(draw(Band(range(6), low, high, "baseline")).runs("band")) == 3


def test_dots_are_at_their_places(draw: Draw) -> None:
    drawing = draw(Points([1, 2, None, 3], [4, 5, 6, None], "candidate"))
    found = [run[0] for run in drawing.runs("dot")]
    assert found == [near(at(drawing, 1, 4)), near(at(drawing, 2, 5))]


@pytest.mark.parametrize("shape", ["cross", "diamond", "triangle", "square"])
def test_shapes_are_around_their_places(draw: Draw, shape: Shape) -> None:
    drawing = draw(Points([3], [4], "series1", shape=shape))
    name = "cross" if shape == "cross" else "solid"
    (left, top), (right, bottom) = corners(drawing, name)[0]
    x, y = at(drawing, 3, 4)
    assert left < x < right
    assert top < y < bottom
    assert right - left < 10


def test_points_outside_of_given_limits_are_counted(draw: Draw) -> None:
    drawing = draw(Points([1, 2, 3], [4, 50, -50], "candidate"))
    assert len(drawing.runs("dot")) == 1
    assert "2 points outside" in [text.text for text in drawing.texts()]


def test_bars_stand_on_their_bases(draw: Draw) -> None:
    drawing = draw(Bars([2, 4], [0, 1], [3, 5], "useful", width=1))
    found = corners(drawing, "area", "role-useful")
    expected = [((1.5, 3), (2.5, 0)), ((3.5, 5), (4.5, 1))]
    assert found == [(near(at(drawing, *a)), near(at(drawing, *b))) for a, b in expected]


def test_lying_bars_have_x_and_y_in_each_others_place(draw: Draw) -> None:
    drawing = draw(Bars([2], [1], [3], "wasted", width=1, is_horizontal=True))
    expected = near(at(drawing, 1, 2.5)), near(at(drawing, 3, 1.5))
    assert corners(drawing, "textured", "role-wasted") == [expected]


def test_bars_end_at_the_frame(draw: Draw) -> None:
    drawing = draw(Bars([2], [-100], [1000], "useful", width=1))
    assert corners(drawing, "area") == [(near(at(drawing, 1.5, 10)), near(at(drawing, 2.5, 0)))]


def test_spans_are_in_their_rows(draw: Draw) -> None:
    rows = Axis("", categories=["first", "second"])
    drawing = draw(Spans([1], [2], [6], "ok", height=0.5), y=rows)
    _, top, _, bottom = drawing.frame()
    ((left, high), (right, low)) = corners(drawing, "area")[0]
    assert (left, right) == near((at(drawing, 2, 0)[0], at(drawing, 6, 0)[0]))
    row = (bottom - top) / 2
    assert (high, low) == near((top + 1.25 * row, top + 1.75 * row))


def test_a_span_of_no_time_is_seen(draw: Draw) -> None:
    ((left, _), (right, _)) = corners(draw(Spans([1], [2], [2], "ok")), "area")[0]
    assert right - left >= 0.8


@pytest.mark.parametrize("is_horizontal", [True, False])
def test_an_interval_has_its_mean_and_both_ends(draw: Draw, is_horizontal: bool) -> None:
    drawing = draw(Intervals([2], [3], [5], [9], "winner", is_horizontal=is_horizontal))
    line, low_cap, high_cap = drawing.runs("range")
    places = [(3, 2), (9, 2)] if is_horizontal else [(2, 3), (2, 9)]
    assert line == [near(at(drawing, *own)) for own in places]
    for cap, (x, y) in zip((low_cap, high_cap), line, strict=True):
        middle = ((cap[0][0] + cap[1][0]) / 2, (cap[0][1] + cap[1][1]) / 2)
        assert middle == near((x, y))
    (left, top), (right, bottom) = corners(drawing, "solid")[0]
    expected = at(drawing, 5, 2) if is_horizontal else at(drawing, 2, 5)
    assert ((left + right) / 2, (top + bottom) / 2) == near(expected)


def test_what_may_be_chance_is_hollow(draw: Draw) -> None:
    drawing = draw(Intervals([2], [3], [5], [9], "winner", is_filled=False))
    assert drawing.all("open")
    assert not drawing.all("solid")


def test_a_mean_without_a_range_is_drawn_alone(draw: Draw) -> None:
    drawing = draw(Intervals([2], [None], [5], [9], "winner"))
    assert drawing.all("solid")
    assert not drawing.all("range")


def test_rules_cross_the_frame(draw: Draw) -> None:
    drawing = draw(Rule(5, "baseline"), Rule(2, "limit", axis="x"))
    (level,), (upright,) = drawing.runs("rule", "role-baseline"), drawing.runs("role-limit")
    assert level == [near(at(drawing, 0, 5)), near(at(drawing, 10, 5))]
    assert upright == [near(at(drawing, 2, 10)), near(at(drawing, 2, 0))]


def test_a_rule_outside_is_neither_drawn_nor_named(draw: Draw) -> None:
    drawing = draw(Points([1], [1], "best"), Rule(50, "limit", "far"))
    assert not drawing.all("rule")
    assert "far" not in [text.text for text in drawing.texts()]


def test_a_stripe_reaches_from_edge_to_edge(draw: Draw) -> None:
    drawing = draw(Stripe(2, float("inf"), "baseline"))
    assert corners(drawing, "band") == [(near(at(drawing, 0, 10)), near(at(drawing, 10, 2)))]


def test_cells_are_squares_with_their_numbers(draw: Draw) -> None:
    names = Axis("", categories=["a", "b"])
    drawing = draw(Cells([[1, -0.5], [None, 0.254]]), x=names, y=names)
    left, top, right, bottom = drawing.frame()
    numbers = {text.text: text for text in drawing.all("on")}
    assert set(numbers) == {"1.00", "−0.50", "–", "0.25"}  # noqa: RUF001
    assert float(numbers["−0.50"].get("x")) == pytest.approx(left + 0.75 * (right - left), abs=0.1)  # noqa: RUF001
    assert top < float(numbers["1.00"].get("y")) < (top + bottom) / 2
    assert drawing.all("cell", "heat-p10")
    assert drawing.all("cell", "heat-m5")
    assert drawing.all("cell", "heat-none")


def test_a_note_is_beside_its_place_and_inside_the_plot(draw: Draw) -> None:
    drawing = draw(Note(1, 5, "here"), Note(10, 5, "a note with many words in it"))
    here, there = drawing.all("note")
    assert 0 < float(here.get("x")) - at(drawing, 1, 5)[0] < 10
    assert "end" in there.get("class")


def test_a_logarithmic_axis_has_decades_as_far_apart(draw: Draw) -> None:
    axis = Axis("y", "log", low=1e-4, high=1e4)
    drawing = draw(Points([1, 1, 1, 1], [1e-4, 1.0, 1e4, 0.0], "best"), y=axis)
    _, top, _, bottom = drawing.frame()
    heights = [run[0][1] for run in drawing.runs("dot")]
    assert heights == pytest.approx([bottom, (top + bottom) / 2, top], abs=0.11)


def test_marks_are_drawn_in_their_order(draw: Draw) -> None:
    drawing = draw(Line([0, 1], [0, 1], "best"), Points([1], [1], "mean"), Rule(1, "limit"))
    order = [
        own.get("class").split()[-1] for own in drawing.all() if "role-" in own.get("class", "")
    ]
    assert [own for own in order if own != "dash-own"] == ["role-best", "role-mean", "role-limit"]


def test_one_of_many_is_paler(draw: Draw) -> None:
    marks = Line([0, 1], [0, 1], "best", is_faint=True), Points([1], [1], "mean", is_faint=True)
    assert [own.get("class") for own in draw(*marks).all("pale")] == [
        "line pale role-best",
        "solid pale role-mean",
    ]
