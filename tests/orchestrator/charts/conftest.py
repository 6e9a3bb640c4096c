"""Drawings taken apart: where their marks are, and what is written where."""

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element, fromstring

import pytest

from orchestrator.charts.chart import (
    Axis,
    Band,
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
    Stripe,
)
from orchestrator.charts.svg import svg

Runs = list[list[tuple[float, float]]]

_TOKEN = re.compile(r"[A-Za-z]|-?(?:\d+\.?\d*|\.\d+)")


class Drawing:
    """One plot's SVG, to ask where things are."""

    def __init__(self, plot: Plot) -> None:
        self.text = svg(plot)
        self.root = fromstring(self.text)  # noqa: S314 - our own

    def all(self, *classes: str) -> list[Element]:
        """Elements that have all of these classes, without the legend's and the patterns'."""
        charts = self.root.findall("{*}g")
        found = (element for chart in charts for element in chart.iter())
        return [own for own in found if set(classes) <= set(own.get("class", "").split())]

    def runs(self, *classes: str) -> Runs:
        """Places of the paths of these classes, each without a break."""
        return [run for own in self.all(*classes) for run in places(own.get("d", ""))]

    def texts(self) -> list[Element]:
        return list(self.root.iter("{http://www.w3.org/2000/svg}text"))

    def frame(self, number: int = 0) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of a chart's frame."""
        (run,) = places(self.all("axis")[number].get("d", ""))
        return run[0][0], run[0][1], run[2][0], run[2][1]


def places(d: str) -> Runs:
    """The places that a path goes through."""
    tokens, runs = _TOKEN.findall(d), Runs()
    x = y = 0.0
    command, at = "", 0
    while at < len(tokens):
        if tokens[at].isalpha():
            command, at = tokens[at], at + 1
            if command in "Zz":
                x, y = runs[-1][0]
                continue
        count = 1 if command in "hvHV" else 2
        numbers, at = list(map(float, tokens[at : at + count])), at + count
        x, y = _moved(command, x, y, numbers)
        if command in "Mm":
            runs.append([])
            command = "l" if command == "m" else "L"
        runs[-1].append((x, y))
    return runs


def _moved(command: str, x: float, y: float, numbers: list[float]) -> tuple[float, float]:
    match command:
        case "h":
            return x + numbers[0], y
        case "v":
            return x, y + numbers[0]
        case "H":
            return numbers[0], y
        case "V":
            return x, numbers[0]
        case "m" | "l":
            return x + numbers[0], y + numbers[1]
        case _:
            return numbers[0], numbers[1]


@pytest.fixture
def draw() -> Callable[..., Drawing]:
    """A drawing of a chart of marks on axes from 0 to 10."""

    def drawing(*marks: Mark, x: Axis | None = None, y: Axis | None = None) -> Drawing:
        own = Axis("across", low=0, high=10)
        chart = Chart(x or own, y or own, marks)
        return Drawing(Plot("test", "A test", "", "", (chart,)))

    return drawing


@pytest.fixture
def drawing_of() -> Callable[[Plot], Drawing]:
    return Drawing


EVERY: dict[str, Mark] = {
    "line": Line([0, 1, None, 3, 4], [1, 2, 3, None, 5], "best", "line"),
    "steps": Line([0, 5, 10], [1, 2, 3], "luck", "steps", is_step=True),
    "band": Band([0, 5, 10], [1, None, 3], [2, 3, 4], "baseline", "band"),
    "points": Points([0, None, 5], [1, 2, 3], "candidate", "points", tips=["a", "b", "c"]),
    "crosses": Points([0, 5], [1, 3], "failed", "crosses"),
    "bars": Bars([1, 2, None], [0, 0, 0], [3, 4, 5], "useful", "bars", tips=["one"]),
    "hatched": Bars([1, 2], [0, 0], [3, 4], "wasted", "hatched", is_horizontal=True),
    "spans": Spans([0, 1], [0, 5], [4, 9], "lost", "spans"),
    "intervals": Intervals([1, 2], [0, None], [3, 4], [5, None], "winner", "intervals"),
    "hollow": Intervals([1], [0], [3], [5], "mean", is_horizontal=False, is_filled=False),
    "rule": Rule(5, "limit", "rule"),
    "upright": Rule(5, "limit", "upright", axis="x"),
    "stripe": Stripe(2, 4, "baseline", "stripe"),
    "cells": Cells([[1, -0.5], [None, 0.25]]),
    "note": Note(5, 5, "note"),
}


@pytest.fixture(params=list(EVERY))
def every(request: pytest.FixtureRequest) -> Mark:
    """Each kind of mark in turn."""
    return EVERY[request.param]
