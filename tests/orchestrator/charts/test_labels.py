"""What is written around a frame: nothing over anything else."""

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import pytest

from orchestrator.charts.chart import Axis, Chart, Line, Plot, Points, Rule
from orchestrator.charts.lettering import BOLD, TEXT, width_of

Box = tuple[float, float, float, float]
DrawingOf = Callable[[Plot], Any]

LONG = "a name of a rule that is much longer than there is room for beside any frame"


def box_of(text: Any) -> Box | None:
    """The room that a level text takes; None of a tilted one."""
    if text.get("transform"):
        return None
    written = text.text or text[0].tail
    names = text.get("class", "").split()
    wide = width_of(written) * (BOLD if "name" in names else 1)
    x, y = float(text.get("x")), float(text.get("y"))
    left = x - wide if "end" in names else x - wide / 2 if {"middle", "why"} & set(names) else x
    return left, y - TEXT * 0.75, left + wide, y + TEXT * 0.2


def overlaps(texts: Sequence[Any]) -> list[tuple[str, str]]:
    boxes = [(box, text) for text in texts if (box := box_of(text))]
    return [
        (one[1].text, other[1].text)
        for one, other in combinations(boxes, 2)
        if min(one[0][2], other[0][2]) - max(one[0][0], other[0][0]) > 0.5
        and min(one[0][3], other[0][3]) - max(one[0][1], other[0][1]) > 0.5
    ]


def whole(*charts: Chart, columns: int = 1, aspect: float = 0.4) -> Plot:
    return Plot("p", "p", "", "", charts, columns, aspect)


def plots() -> dict[str, Plot]:
    line = Line([0, 39], [3.1206, 3.1208], "best", "best so far")
    rules = [Rule(3.1206 + n * 1e-6, "limit", f"rule {n} {LONG[: 9 * n]}") for n in range(8)]
    upright = [Rule(n * 1.5, "muted", f"{n} {LONG[: 5 * n]}", axis="x") for n in range(8)]
    axes = Axis("generation", is_whole=True), Axis("score (lower is better)")
    names = Axis("", categories=[f"{n} {LONG}" for n in range(30)])
    few = Axis("", categories=["a", "b"])
    cloud = Points([0.0, 29.0], [0.0, 29.0], "candidate", "a candidate")
    small = Chart(Axis(LONG), Axis(LONG), (line, *rules), title=LONG)
    large = Line([123456789, 123456999], [0, 1], "best")
    legend = [Line([0, 1], [0, 1], "best", f"{n} {LONG[: n * 9]}") for n in range(12)]
    return {
        "line": whole(Chart(*axes, (line,))),
        "rules": whole(Chart(*axes, (line, *rules, *upright))),
        "flat": whole(Chart(*axes, (line, *rules)), aspect=0.05),
        "names": whole(Chart(names, names, (cloud,))),
        "few names": whole(Chart(few, few, (cloud,))),
        "small": whole(*[small] * 10, columns=5, aspect=0.8),
        "legend": whole(Chart(*axes, tuple(legend))),
        "log": whole(Chart(Axis("x", "log"), Axis("y", "log"), (Line([1e-9, 1], [1, 9], "best"),))),
        "huge": whole(Chart(Axis("x"), Axis("y"), (Line([-1e300, 1], [1e-300, 1], "best"),))),
        "large": whole(*[Chart(Axis("x"), Axis("y"), (large,))] * 4, columns=4),
        "outside": whole(Chart(Axis(LONG, high=1), Axis(LONG), (Points([0, 5], [0, 5], "best"),))),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(plots()))
def test_no_text_is_over_another(name: str, drawing_of: DrawingOf) -> None:
    assert not overlaps(drawing_of(plots()[name]).texts())


@pytest.mark.parametrize("name", list(plots()))
def test_all_text_is_within_the_drawing(name: str, drawing_of: DrawingOf) -> None:
    drawing = drawing_of(plots()[name])
    height = float(drawing.root.get("viewBox").split()[3])
    for box in filter(None, map(box_of, drawing.texts())):
        assert box[0] >= -1
        assert box[2] <= 801
        assert box[1] >= 0
        assert box[3] <= height


def test_a_check_of_overlaps_finds_one(drawing_of: DrawingOf) -> None:
    texts = drawing_of(plots()["line"]).texts()
    texts[0].set("x", texts[1].get("x"))
    texts[0].set("y", texts[1].get("y"))
    assert overlaps(texts)


def test_names_that_are_cut_are_whole_when_pointed_at(drawing_of: DrawingOf) -> None:
    drawing = drawing_of(plots()["few names"])
    assert not [text for text in drawing.all("tick") if len(text)]
    cut = [text for text in drawing_of(plots()["names"]).all("tick") if len(text)]
    assert cut
    assert all(LONG in text[0].text for text in cut)
    assert all(text[0].tail.endswith("…") for text in cut)


def test_names_below_a_frame_are_tilted_where_they_do_not_fit(drawing_of: DrawingOf) -> None:
    tilted = [text for text in drawing_of(plots()["names"]).all("tick") if text.get("transform")]
    assert tilted
    for text in tilted:  # up to its place, and not out of the drawing at the left
        reach = float(text.get("x")) - 0.8 * width_of(text.text or text[0].tail)
        assert reach >= -1
    few = drawing_of(plots()["few names"]).all("tick")
    assert not [text for text in few if text.get("transform")]


def test_names_of_rules_are_outside_of_the_frame_and_in_their_order(
    drawing_of: DrawingOf,
) -> None:
    drawing = drawing_of(plots()["rules"])
    _, top, right, _ = drawing.frame()
    names = [text for text in drawing.all("note") if "middle" not in text.get("class")]
    assert len(names) == 8
    assert all(float(text.get("x")) > right for text in names)
    places = [float(text.get("y")) for text in names]
    assert places == sorted(places)
    numbers = [int(re.findall(r"rule (\d)", text.text or text[0].tail)[0]) for text in names]
    assert numbers == sorted(numbers, reverse=True)
    above = [text for text in drawing.all("note") if "middle" in text.get("class")]
    assert all(float(text.get("y")) < top for text in above)


def test_a_name_is_led_to_its_rule(drawing_of: DrawingOf) -> None:
    drawing = drawing_of(plots()["rules"])
    level = [run[0][1] for run in drawing.runs("rule", "role-limit")]
    leads = [run for run in drawing.runs("lead") if run[0][0] > drawing.frame()[2]]
    assert sorted(lead[0][1] for lead in leads) == pytest.approx(sorted(level), abs=0.11)


def test_titles_of_axes_are_said_once_where_they_are_the_same(drawing_of: DrawingOf) -> None:
    own = Chart(Axis("step"), Axis("loss"), (Line([0, 1], [0, 1], "best"),))
    drawing = drawing_of(whole(*[own] * 4, columns=2))
    texts = [text.text for text in drawing.texts()]
    assert texts.count("step") == 2
    assert texts.count("loss") == 2
    other = Chart(Axis("time"), Axis("memory"), own.marks)
    texts = [text.text for text in drawing_of(whole(own, other, own, other, columns=2)).texts()]
    assert texts.count("step") == texts.count("time") == texts.count("memory") == 2


def test_frames_of_a_row_are_as_high_and_as_far_up(drawing_of: DrawingOf) -> None:
    one = Chart(Axis("x"), Axis("y"), (Line([0, 1], [0, 1], "best"),), title="a title")
    other = Chart(Axis("x", categories=["a" * 30] * 9), Axis("other"), (Line([0], [1], "best"),))
    drawing = drawing_of(whole(one, other, columns=2))
    first, second = drawing.frame(0), drawing.frame(1)
    assert (first[1], first[3]) == (second[1], second[3])
    assert first[2] < second[0]
