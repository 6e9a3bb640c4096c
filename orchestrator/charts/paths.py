"""Marks as the text of SVG paths: places with one decimal, many marks of a kind in one path."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from orchestrator.charts.chart import Numbers, Shape
from orchestrator.charts.frame import Frame
from orchestrator.charts.scale import is_drawable

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def short(value: float) -> str:
    """A number with one decimal at most."""
    return _tenths(round(value * 10))


def _tenths(count: int) -> str:
    whole, rest = divmod(abs(count), 10)
    digits = f"{whole or ''}.{rest}" if rest else str(whole)
    return f"-{digits}" if count < 0 else digits


def _pair(x: int, y: int) -> str:
    return f"{_tenths(x)}{'' if y < 0 else ' '}{_tenths(y)}"


def _moves(places: Iterable[Place]) -> Iterator[tuple[int, int]]:
    """From each place to the next in tenths, as drawn: nothing adds up to an error."""
    x0, y0 = 0, 0
    for place in places:
        x, y = round(place[0] * 10), round(place[1] * 10)
        yield x - x0, y - y0
        x0, y0 = x, y


def runs(frame: Frame, xs: Numbers, ys: Numbers) -> list[list[Place]]:
    """Places of (x, y), broken where one of them is missing or has no place."""
    places: list[list[Place]] = [[]]
    for x, y in zip(xs, ys, strict=True):
        place = place_of(frame, x, y)
        if place is not None:
            places[-1].append(place)
        elif places[-1]:
            places.append([])
    return [run for run in places if run]


def place_of(frame: Frame, x: float | None, y: float | None) -> Place | None:
    """Where (x, y) is; None: nowhere."""
    x_axis, y_axis = frame.x.range, frame.y.range
    if x is None or not is_drawable(x, is_log=x_axis.is_log):
        return None
    if y is None or not is_drawable(y, is_log=y_axis.is_log):
        return None
    return frame.x.at(x), frame.y.at(y)


def line(run: Sequence[Place]) -> str:
    """A line through its places."""
    first, *rest = _moves(run)
    return f"M{_pair(*first)}l{' '.join(_pair(*move) for move in rest)}"


def steps(run: Sequence[Place]) -> str:
    """A line that stays at each place's height until the next."""
    first, *rest = _moves(run)
    return f"M{_pair(*first)}" + "".join(f"h{_tenths(x)}v{_tenths(y)}" for x, y in rest)


def thinned(run: Sequence[Place]) -> Sequence[Place]:
    """The run, with the first, lowest, highest and last place of each unit where it has more."""
    if len(run) <= 2 * (abs(run[-1][0] - run[0][0]) + 10):
        return run
    kept: list[Place] = []
    for _, own in groupby(run, key=lambda place: round(place[0])):
        column = list(own)
        ends = {0, len(column) - 1}
        by_y = sorted(range(len(column)), key=lambda index: column[index][1])
        kept.extend(column[index] for index in sorted(ends | {by_y[0], by_y[-1]}))
    return kept


def area(upper: Sequence[Place], lower: Sequence[Place]) -> str:
    """The area between two lines."""
    return f"{line([*upper, *reversed(lower)])}Z"


def boxes(many: Iterable[Box]) -> str:
    """Rectangles, none so thin that it is not seen."""
    text = []
    for left, top, right, bottom in many:
        wide, high = max(right - left, 0.8), max(bottom - top, 0.5)
        text.append(f"M{short(left)} {short(top)}h{short(wide)}v{short(high)}h-{short(wide)}Z")
    return "".join(text)


def shapes(places: Iterable[Place], shape: Shape, size: float) -> str:
    """Marks of one shape. Dots are points of a round pen as wide as they are.

    No square pen: what has no length has no direction, and a printer leaves it out.
    """
    unique = dict.fromkeys((round(x, 1), round(y, 1)) for x, y in places)
    if shape == "dot":
        return "".join(f"m{_pair(*move)}h0" for move in _moves(unique))
    draw = {"cross": _cross, "diamond": _diamond, "square": _square}.get(shape, _triangle)
    return "".join(draw(x, y, size / 2) for x, y in unique)


def _cross(x: float, y: float, half: float) -> str:
    reach, back = short(2 * half), short(-2 * half)
    return f"M{short(x - half)} {short(y - half)}l{reach} {reach}m0 {back}l{back} {reach}"


def _square(x: float, y: float, half: float) -> str:
    side = short(2 * half)
    return f"M{short(x - half)} {short(y - half)}h{side}v{side}h-{side}Z"


def _diamond(x: float, y: float, half: float) -> str:
    reach = 1.25 * half
    out, back = short(reach), short(-reach)
    return f"M{short(x)} {short(y - reach)}l{out} {out} {back} {out} {back} {back}Z"


def _triangle(x: float, y: float, half: float) -> str:
    reach = 1.15 * half
    top, out = short(y - reach), short(reach)
    return f"M{short(x)} {top}l{out} {short(1.9 * reach)}h{short(-2 * reach)}Z"
