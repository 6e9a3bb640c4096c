"""A knob's range as an axis: places from 0 to 1, named by the knob's own values."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import cast

from objectives.space import Kind, Knob, to_x
from orchestrator.charts.chart import Axis
from orchestrator.report.model import KnobView

MOST_TICKS = 5

MINUS = "\N{MINUS SIGN}"

ROOM = 0.03
"""Of the range, beyond its ends: marks at an end are whole."""


def axis_of(view: KnobView) -> Axis:
    """The whole range, with some of its values named."""
    return Axis("", low=-ROOM, high=1 + ROOM, ticks=ticks_of(view))


def ticks_of(view: KnobView) -> list[tuple[float, str]]:
    """Round values of the knob, each with its place."""
    knob = knob_of(view)
    values = {"log10": _decades, "sigmoid01": _places, "tanh11": _places}.get(view.kind, _round)
    inside = (value for value in values(view) if -1e-9 <= knob.encode(value) <= 1 + 1e-9)
    found = list(dict.fromkeys(inside))
    return [(knob.encode(value), name) for value, name in zip(found, _named(found), strict=True)]


def _named(values: Sequence[float]) -> list[str]:
    """With as many digits as it takes to see how far they are from each other."""
    names: list[str] = []
    reach = max(values, default=0.0) - min(values, default=0.0)
    for digits in range(4, 16):
        names = [in_words(value, digits) for value in values]
        off = (abs(float(name) - value) for name, value in zip(names, values, strict=True))
        if max(off, default=0.0) <= 1e-3 * reach:
            break
    return [name.replace("-", MINUS) for name in names]


def knob_of(view: KnobView) -> Knob:
    """The knob of the space, which was checked when it was made: not again, on rounded bounds."""
    kind = cast("Kind", view.kind)
    return Knob.model_construct(
        name=view.name,
        kind=kind,
        low=to_x(kind, view.low),
        high=to_x(kind, view.high),
        step=view.step,
        baseline=view.baseline,
    )


def in_words(value: float, digits: int = 4) -> str:
    """`0.02`, `3e-4`, `512`: so many digits at most."""
    size = abs(value)
    if size and not 1e-3 <= size < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:.{digits}g}"


def _round(view: KnobView) -> Iterator[float]:
    """Multiples of 1, 2 or 5 times a power of ten; of an int knob values that it takes."""
    span = view.high - view.low
    if view.kind == "int" and span / view.step < MOST_TICKS:
        yield from (view.low + n * view.step for n in range(round(span / view.step) + 1))
        return
    step = _step(span)
    if view.kind == "int":
        step = view.step * ceil(step / view.step)
        yield from (view.low + n * step for n in range(floor(span / step) + 1))
        return
    first = ceil(view.low / step - 1e-9)
    yield from (n * step for n in range(first, floor(view.high / step + 1e-9) + 1))


def _step(span: float) -> float:
    scale = 10.0 ** floor(log10(span / MOST_TICKS))
    return next(s * scale for s in (1, 2, 2.5, 5, 10, 20) if span / (s * scale) <= MOST_TICKS - 1)


def _decades(view: KnobView) -> list[float]:
    """Powers of ten; where there are few, what lies at 2 and 5 between them too."""
    low, high = log10(view.low) - 1e-9, log10(view.high) + 1e-9
    exponents = range(floor(low), ceil(high) + 1)
    for digits in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        every = [float(f"{digit}e{exponent}") for exponent in exponents for digit in digits]
        found = [value for value in every if low <= log10(value) <= high]
        if len(found) <= MOST_TICKS:
            break
    else:
        found = found[:: ceil(len(found) / MOST_TICKS)]
    return found if len(found) > 1 else list(_round(view))


def _places(view: KnobView) -> Iterator[float]:
    """Values at even places, rounded."""
    knob = knob_of(view)
    for n in range(MOST_TICKS):
        value = knob.decode(n / (MOST_TICKS - 1))
        yield min(max(float(f"{value:.3g}"), view.low), view.high)
