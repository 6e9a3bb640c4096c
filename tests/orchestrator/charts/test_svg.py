"""A plot as SVG: an element that is well-formed, safe, small, and the same each time."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from orchestrator.charts.chart import (
    Axis,
    Bars,
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
from orchestrator.charts.svg import svg

HOSTILE = "</svg><script>alert('1')</script>\x00\x1b[2J\u202e\ud800 & \" ]]> $x$ <!--"

AWKWARD = [None, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 0.0, 1e-320]


def plot_of(*marks: Mark, name: str = "test", **axis: Any) -> Plot:
    own = Axis("x", **axis)
    return Plot(name, "A test", "a caption", "described", (Chart(own, own, marks),))


def numbers_in(root: Element) -> str:
    kept = {"class", "id", "role", "aria-labelledby", "xmlns", "clip-path", "fill"}
    own = [v for e in root.iter() for name, v in e.attrib.items() if name not in kept]
    return " ".join(own)


def test_a_plot_is_well_formed_whatever_its_text_says() -> None:
    marks = (
        Line([0, 1], [1, 2], "best", HOSTILE),
        Points([0], [1], "failed", HOSTILE, tips=[HOSTILE]),
        Bars([0], [1], [2], "wasted", HOSTILE, tips=[HOSTILE]),
        Rule(1, "limit", HOSTILE),
        Note(1, 1, HOSTILE),
    )
    named = Chart(Axis(HOSTILE), Axis(HOSTILE), marks, title=HOSTILE)
    rows = Chart(Axis("", categories=[HOSTILE]), Axis("", categories=[HOSTILE]), marks)
    why = Chart(Axis(""), Axis(""), empty=HOSTILE)
    text = svg(Plot(HOSTILE, HOSTILE, HOSTILE, HOSTILE, (named, rows, why)))
    root = fromstring(text)  # noqa: S314 - our own
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert tags <= {
        "svg", "title", "desc", "defs", "clipPath", "pattern", "rect", "path", "text", "g",
    }  # fmt: skip
    assert "<script" not in text
    assert all(character.isprintable() for character in text)


def test_a_plot_has_no_style_script_link_or_handler_of_its_own(every: Mark) -> None:
    root = fromstring(svg(plot_of(every)))  # noqa: S314 - our own
    names = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in names if name == "style" or name.startswith("on")}
    assert not {name for name in names if "href" in name}


def test_who_cannot_see_it_is_told_what_it_shows() -> None:
    root = fromstring(svg(plot_of(Line([0], [1], "best"))))  # noqa: S314 - our own
    assert root.get("role") == "img"
    told = root.get("aria-labelledby", "").split()
    texts = {element.get("id"): element.text for element in root.iter()}
    assert [texts[own] for own in told] == ["A test", "described"]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_no_attribute_is_ever_no_number(scale: str) -> None:
    x, y = AWKWARD, list(reversed(AWKWARD))
    known = [value for value in AWKWARD if value is not None]
    marks: tuple[Mark, ...] = (
        Line(x, y, "best"),
        Line(x, y, "mean", is_step=True),
        Points(x, y, "candidate"),
        Bars(x, y, x, "useful"),
        Intervals(x, y, x, y, "winner"),
        *(Rule(value, "limit", "rule") for value in known),
        *(Note(value, value, "note") for value in known),
        Spans([0.0] * 7, known, list(reversed(known)), "ok"),
    )
    text = numbers_in(fromstring(svg(plot_of(*marks, scale=scale))))  # noqa: S314 - our own
    assert not re.search(r"nan|inf|\de[-+]?\d", text, re.IGNORECASE)
    assert max(abs(float(n)) for n in re.findall(r"-?[\d.]+", text)) < 10_000


def test_the_same_plot_is_the_same_text(every: Mark) -> None:
    assert svg(plot_of(every)) == svg(plot_of(every))


def test_ids_are_unique_and_begin_with_the_plots_name() -> None:
    marks = (Bars([0], [0], [1], "wasted"), Spans([0], [0], [1], "lost"))
    plot = replace(plot_of(*marks), charts=[*plot_of(*marks).charts] * 3, columns=2)
    for name, ids in (("test", "drawn-test"), ("a b<c", "drawn-a-b-c")):
        root = fromstring(svg(replace(plot, name=name)))  # noqa: S314 - our own
        found = [element.get("id", "") for element in root.iter() if element.get("id")]
        assert len(set(found)) == len(found)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]+", own) for own in found)
        assert all(own.startswith(ids) for own in found)


def test_every_reference_has_its_target(every: Mark) -> None:
    root = fromstring(svg(plot_of(every)))  # noqa: S314 - our own
    ids = {element.get("id") for element in root.iter()}
    used = re.findall(r"url\(#([^)]+)\)", svg(plot_of(every)))
    assert set(used) <= ids


@pytest.mark.parametrize("with_tips", [False, True])
def test_two_thousand_points_take_less_than_forty_kilobytes(with_tips: bool) -> None:
    draw = random.Random(1)  # noqa: S311 - no secret
    x = [float(n // 12) for n in range(2160)]
    y = [draw.gauss(3.1, 0.01) for _ in x]
    tips = ["a tip" * 20] * len(x) if with_tips else []
    text = svg(plot_of(Points(x, y, "candidate", tips=tips)))
    assert len(text.encode()) < 40_000


def test_a_curve_of_many_steps_is_as_long_as_the_plot_is_wide() -> None:
    draw = random.Random(1)  # noqa: S311 - no secret
    many = [draw.random() for _ in range(50_000)]
    assert len(svg(plot_of(Line(range(50_000), many, "best")))) < 40_000


def test_few_points_say_what_they_are(drawing_of: Callable[[Plot], Any]) -> None:
    tips = [f"candidate {n}" for n in range(300)]
    drawing = drawing_of(plot_of(Points(range(300), range(300), "candidate", tips=tips)))
    dots = drawing.all("dot")
    assert [dot[0].text for dot in dots] == tips
    many = plot_of(Points(range(301), range(301), "candidate", tips=[*tips, "one more"]))
    assert len(drawing_of(many).all("dot")) == 1


def test_a_chart_without_anything_says_why(drawing_of: Callable[[Plot], Any]) -> None:
    axis = Axis("x")
    charts = (
        Chart(axis, axis, empty="no generation is over yet"),
        Chart(axis, axis, (Line([None], [None], "best"),)),
        Chart(axis, axis),
    )
    for chart, why in zip(
        charts, ("no generation is over yet", *["nothing to show"] * 2), strict=True
    ):
        drawing = drawing_of(Plot("p", "p", "", "", (chart,)))
        assert why in [text.text for text in drawing.texts()]
        assert not drawing.all("axis")


def test_a_plot_without_charts_is_an_empty_picture() -> None:
    assert fromstring(svg(Plot("p", "p", "", "", ()))).get("viewBox")  # noqa: S314 - our own


def test_a_drawing_ends_below_all_that_is_written_in_it(
    every: Mark, drawing_of: Callable[[Plot], Any]
) -> None:
    drawing = drawing_of(plot_of(every))
    _, _, width, height = map(float, drawing.root.get("viewBox").split())
    assert width == 800
    for text in drawing.texts():
        assert 0 <= float(text.get("x")) <= width
        assert 8 <= float(text.get("y")) <= height
