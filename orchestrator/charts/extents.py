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
        case Bars():
            return _of_bars(mark)
        case Spans():
            half = mark.height / 2
            rows = [end for row in mark.row for end in (row - half, row + half)]
            return [*mark.start, *mark.end], rows
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


def _of_bars(mark: Bars) -> Pair:
    drawn = list(bars(mark))
    along = [end for x, _, _, _ in drawn for end in (x - mark.width / 2, x + mark.width / 2)]
    across = [end for _, base, top, _ in drawn for end in (base, top)]
    return (across, along) if mark.is_horizontal else (along, across)


def bars(mark: Bars) -> Iterator[tuple[float, float, float, str]]:
    """Place, base, top and tip of every bar that has all three numbers."""
    for x, base, top, tip in zip(mark.x, mark.base, mark.top, tips(mark), strict=True):
        if x is not None and base is not None and top is not None:
            yield x, base, top, tip


def tips(mark: Points | Bars | Spans) -> Sequence[str]:
    """One for each of its marks, empty where there is none to give."""
    count = len(mark.row) if isinstance(mark, Spans) else len(mark.x)
    return [*mark.tips[:count], *([""] * (count - len(mark.tips)))]
