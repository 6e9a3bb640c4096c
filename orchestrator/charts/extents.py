"""How far marks reach along each axis."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import assert_never

from orchestrator.charts.chart import (
    Band,
    Bars,
    Cells,
    Chart,
    Intervals,
    Line,
    Mark,
    Note,
    Numbers,
    Points,
    Rule,
    Spans,
    Stripe,
)

Pair = tuple[Numbers, Numbers]
Ends = tuple[float, float]


def along(chart: Chart) -> Pair:
    """What the ranges of both axes must hold, x first."""
    pairs = [reach(mark) for mark in chart.marks]
    return list(chain.from_iterable(x for x, _ in pairs)), list(
        chain.from_iterable(y for _, y in pairs)
    )


def reach(mark: Mark) -> Pair:  # noqa: PLR0911 - one a mark
    """The numbers of one mark along x and along y; those without a partner do not count."""
    match mark:
        case Line() | Points():
            return _together(mark.x, mark.y)
        case Band():
            lows, highs = _together(mark.x, mark.low), _together(mark.x, mark.high)
            return [*lows[0], *highs[0]], [*lows[1], *highs[1]]
        case Bars() | Spans():
            own = list(boxes_of(mark))
            return [end for x, _, _ in own for end in x], [end for _, y, _ in own for end in y]
        case Intervals():
            along, across = [*mark.low, *mark.mean, *mark.high], list(mark.at)
            return (along, across) if mark.is_horizontal else (across, along)
        case Rule():
            return ([mark.value], []) if mark.axis == "x" else ([], [mark.value])
        case Stripe():
            ends = [mark.low, mark.high]
            return (ends, []) if mark.axis == "x" else ([], ends)
        case Note():
            return [mark.x], [mark.y]
        case Cells():
            return [], []
    assert_never(mark)


def _together(xs: Numbers, ys: Numbers) -> Pair:
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return [x for x, _ in pairs], [y for _, y in pairs]


def boxes_of(mark: Bars | Spans) -> Iterator[tuple[Ends, Ends, str]]:
    """From where to where each reaches along x and along y, and its tip; only of whole bars."""
    if isinstance(mark, Spans):
        half = mark.height / 2
        for row, start, end, tip in zip(mark.row, mark.start, mark.end, tips(mark), strict=True):
            yield (start, end), (row - half, row + half), tip
        return
    half = mark.width / 2
    for x, base, top, tip in zip(mark.x, mark.base, mark.top, tips(mark), strict=True):
        if x is not None and base is not None and top is not None:
            wide, high = (x - half, x + half), (base, top)
            yield (high, wide, tip) if mark.is_horizontal else (wide, high, tip)


def tips(mark: Points | Bars | Spans) -> Sequence[str]:
    """One for each of its marks, empty where there is none to give."""
    count = len(mark.row) if isinstance(mark, Spans) else len(mark.x)
    return [*mark.tips[:count], *([""] * (count - len(mark.tips)))]
