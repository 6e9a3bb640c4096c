"""What a plot shows, without how: marks on two axes, each in a role that has a colour of its own.

A description knows no pixels and no colours: `svg` draws it for a page (light, dark, printed),
`figure` for a file with matplotlib. Numbers are in the axes' units; None breaks a line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal[
    "baseline",  # the default configuration, and what noise alone would show
    "candidate",  # one evaluation of the search
    "best",
    "mean",
    "winner",  # what is compared on fresh seeds, or recommended
    "luck",  # what pure noise would show
    "ok",
    "failed",
    "lost",
    "useful",
    "reserved",
    "idle",
    "wasted",
    "limit",
    "muted",
    "series1",
    "series2",
    "series3",
    "series4",
    "series5",
    "series6",
]
"""What a mark stands for. Its colour, and where colour is not enough its dash or shape, follow."""

SERIES: tuple[Role, ...] = ("series1", "series2", "series3", "series4", "series5", "series6")
"""As many as can be told apart in one chart."""

Shape = Literal["dot", "cross", "diamond", "square", "triangle"]

Numbers = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """A line through (x, y); with `is_step` each value holds until the next x."""

    x: Numbers
    y: Numbers
    role: Role
    label: str = ""  # in the legend; empty: not there
    is_dashed: bool = False
    is_step: bool = False
    is_thin: bool = False
    is_faint: bool = False  # of many: paler, so that what lies over it is seen


@dataclass(frozen=True)
class Band:
    """The area between `low` and `high` over x."""

    x: Numbers
    low: Numbers
    high: Numbers
    role: Role
    label: str = ""


@dataclass(frozen=True)
class Points:
    """A mark at each (x, y)."""

    x: Numbers
    y: Numbers
    role: Role
    label: str = ""
    shape: Shape = "dot"
    is_large: bool = False
    tips: Sequence[str] = ()  # what each says when it is pointed at; empty: nothing
    is_faint: bool = False  # of many: paler, so that what lies over it is seen


@dataclass(frozen=True)
class Bars:
    """Bars from `base` to `top` at each x, `width` wide in the units of x; stacked by their bases.

    With `is_horizontal`, x and y change places.
    """

    x: Numbers
    base: Numbers
    top: Numbers
    role: Role
    label: str = ""
    width: float = 0.8
    is_horizontal: bool = False
    tips: Sequence[str] = ()


@dataclass(frozen=True)
class Spans:
    """Stretches from `start` to `end` of x, each in a row of the y axis: a Gantt chart."""

    row: Sequence[float]
    start: Sequence[float]
    end: Sequence[float]
    role: Role
    label: str = ""
    height: float = 0.7  # in rows
    tips: Sequence[str] = ()


@dataclass(frozen=True)
class Intervals:
    """A mean with its range: at `at` of the other axis, along x when `is_horizontal`."""

    at: Numbers
    low: Numbers
    mean: Numbers
    high: Numbers
    role: Role
    label: str = ""
    is_horizontal: bool = True
    is_filled: bool = True  # hollow: may be chance


@dataclass(frozen=True)
class Rule:
    """A straight line across the plot at a value of one axis."""

    value: float
    role: Role
    label: str = ""
    axis: Literal["x", "y"] = "y"  # whose value it is
    is_dashed: bool = True


@dataclass(frozen=True)
class Stripe:
    """The area between two values of one axis, across the plot."""

    low: float
    high: float
    role: Role
    label: str = ""
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True)
class Cells:
    """A matrix of values from -1 to 1 as coloured squares, each with its number.

    Row 0 at the top; both axes of the chart have categories.
    """

    values: Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Note:
    """A word or two beside a place of the plot."""

    x: float
    y: float
    text: str
    role: Role = "muted"


Mark = Line | Band | Points | Bars | Spans | Intervals | Rule | Stripe | Cells | Note


@dataclass(frozen=True)
class Axis:
    """One axis. Its range is that of the marks, unless `low` or `high` is given.

    With `categories`, value i is the place of the i-th; on a y axis the first is at the top.
    """

    label: str  # with the unit: `step time (s)`
    scale: Literal["linear", "log"] = "linear"
    low: float | None = None
    high: float | None = None
    categories: Sequence[str] = ()
    is_whole: bool = False  # ticks at whole numbers only: generations, evaluations
    has_zero: bool = False  # the range includes 0
    ticks: Sequence[tuple[float, str]] = ()  # places with names, instead of the scale's own


@dataclass(frozen=True)
class Chart:
    """One pair of axes with its marks, drawn in their order."""

    x: Axis
    y: Axis
    marks: Sequence[Mark] = ()
    title: str = ""  # of a small multiple
    empty: str = ""  # why there is nothing to draw; the axes are left out
    aspect: float | None = None  # height by width of the plotting area; None: the plot's


@dataclass(frozen=True)
class Plot:
    """One plot: a chart, or small multiples of one kind. One legend serves all of them."""

    name: str  # a file's stem and a command's word: `scores`
    title: str
    caption: str  # what to see in it, in a sentence or two
    description: str  # what it shows, in words, for who cannot see it: with the numbers
    charts: Sequence[Chart]
    columns: int = 1
    aspect: float = 0.4  # height by width, of each plotting area that has none of its own
