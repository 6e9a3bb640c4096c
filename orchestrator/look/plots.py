"""Ten plots of a run, drawn by matplotlib: as SVG for a page, as a file for a paper.

A plot is a function of a `Run`, and None where the run has nothing to show in it. Its words cost
nothing: matplotlib is imported when something is drawn, and its pyplot never.

Scores are better when lower. Colours are those of Okabe and Ito, which the colour-blind tell apart;
marks, lines and hatches differ as well. What is drawn in `INK` takes the colour of the page's text.
"""

import io
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, compress, pairwise
from math import ceil, copysign, floor, inf, isfinite, isnan, log10, nan
from pathlib import Path
from statistics import fmean, quantiles
from textwrap import wrap
from typing import Any, NamedTuple

from budgets.campaign.effects import CampaignReport, telling
from budgets.campaign.names import shortened
from budgets.campaign.words import in_words, name_of
from budgets.causes import is_lost
from budgets.events import Status
from budgets.ledger.storage import write_aside
from budgets.plain import printable
from budgets.statistics.comparison import better
from budgets.statistics.paired import interval
from budgets.verdict.finalists import BASELINE
from budgets.words import counted, listed, number, percent
from objectives.space import Knob as Scale
from orchestrator.look.blocks import Figure
from orchestrator.look.files import curves
from orchestrator.look.rows import Attempt, Knob
from orchestrator.look.run import Run

Canvas = Any
"""A figure of matplotlib."""
Axes = Any
Place = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, right, low, high."""

INK = "#000001"
GREY, BLUE, SKY, GREEN = "#808080", "#0072b2", "#56b4e9", "#009e73"
ORANGE, RED, PURPLE = "#e69f00", "#d55e00", "#cc79a7"
WIDTH, FONT = 6.4, 9.5
"""Of a plot, in inches; of its text, in points. A unit of SVG is a point."""

_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
STYLE = dict.fromkeys((*_INKED, "grid.color", "patch.edgecolor"), INK) | {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": FONT - 1,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "grid.alpha": 0.2,
    "hatch.linewidth": 0.7,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "orchestrator",
    "text.parse_math": False,  # a `$` in a name is a `$`
}

NOISE = {"color": INK, "alpha": 0.13, "lw": 0, "zorder": 0}
BASE = {"color": INK, "lw": 1, "ls": "--"}

MOST_KNOBS, MOST_DOTS = 12, 3000
"""Of small multiples: how many, and the dots in all of them."""
MOST_ROWS, ROW, NAME_WIDTH = 40, 0.22, 34
"""Lines of a forest, the height of one in inches, characters of its name."""
MOST_SLOTS = 64

_LOCK = threading.Lock()
"""Matplotlib's settings are global."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A plot in words, and how to paint it on a canvas of that height (in inches)."""

    title: str
    caption: str
    description: str
    height: float
    paint: Callable[[Canvas], None]


class Plot(NamedTuple):
    """A kind of plot."""

    section: str  # of the report, in which it stands
    draw: Callable[[Run], Drawing | None]


def figures(
    run: Run, names: Iterable[str] | None = None, *, with_svg: bool = True
) -> Iterator[Figure]:
    """Every plot with something to show, in the order of `PLOTS`; or those of these names."""
    wanted = set(PLOTS if names is None else names)
    for name, plot in PLOTS.items():
        drawing = plot.draw(run) if name in wanted else None
        if drawing is not None:
            yield _figure(name, drawing, with_svg=with_svg)


def campaign_figure(found: CampaignReport) -> Figure:
    """The effects of a campaign whose cells are runs of their own."""
    return _figure("effects", _campaign(found), with_svg=True)


def _figure(name: str, drawing: Drawing, *, with_svg: bool) -> Figure:
    return Figure(
        name=name,
        title=_line(drawing.title),
        caption=_line(drawing.caption),
        description=_line(drawing.description),
        svg=_inline(_drawn(drawing, "svg").decode(), name, drawing) if with_svg else "",
    )


def there(run: Run) -> list[str]:
    """The plots that the run has something to show in."""
    return [name for name, plot in PLOTS.items() if plot.draw(run) is not None]


def write(run: Run, name: str, path: Path) -> None:
    """Write one plot as PNG, PDF or SVG, by the suffix of `path`.

    Raises ValueError where there is no such plot or form, or this run has nothing to show in it.
    """
    drawing = PLOTS[name].draw(run) if name in PLOTS else None
    if drawing is None:
        what = "has nothing to show in it" if name in PLOTS else "has no plot of that name"
        known = listed(there(run)) or "no plot yet"
        raise ValueError(f"plot {name!r}: this run {what}; it has {known}")
    _write(drawing, path)


def write_campaign(found: CampaignReport, path: Path) -> None:
    """The same of a campaign's effects. Raises ValueError on another form."""
    _write(_campaign(found), path)


def _write(drawing: Drawing, path: Path) -> None:
    form = path.suffix.lower().removeprefix(".")
    if form not in _METADATA:
        raise ValueError(f"expected a file that ends with .png, .pdf or .svg, got {path.name!r}")
    write_aside(path, _drawn(drawing, form))


# Files and SVG

_METADATA = {"png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer"), "svg": ("Date",)}


def _drawn(drawing: Drawing, form: str) -> bytes:
    """The file; the same run gives the same bytes."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks: a viewer has other fonts
        import matplotlib
        from matplotlib.figure import Figure as NewCanvas

        with matplotlib.rc_context(STYLE):
            canvas, file = NewCanvas(figsize=(WIDTH, drawing.height)), io.BytesIO()
            drawing.paint(canvas)
            metadata = dict.fromkeys(_METADATA[form])
            canvas.savefig(file, format=form, dpi=200, facecolor="white", metadata=metadata)
    return file.getvalue()


_LEFT_OUT = re.compile(
    r'<metadata>.*?</metadata>|<style.*?</style>|<g id="patch_1">.*?</g>', re.DOTALL
)
_STYLED = re.compile(r' style="([^"]*)"')
_SAID = re.compile(r"([a-z-]+): *([^;]+)")
_NUMBER = re.compile(r"-?\d+\.\d+")
_PLACED = re.compile(r' (?:d|x|y|transform)="[^"]*"')
_KEPT = re.compile(r"(fill|stroke)(-[a-z]+)?|font-(size|weight|style)|text-anchor|opacity")


def _inline(drawn: str, name: str, drawing: Drawing) -> str:
    """As part of a page: without paper, style sheets and styles, which a page may forbid.

    Every id has the plot's name before it.
    """

    def attributes(style: re.Match[str]) -> str:
        said = [(key, value.strip()) for key, value in _SAID.findall(style[1])]
        kept = ((key, value) for key, value in said if _KEPT.fullmatch(key))
        return "".join(f' {key}="{value}"' for key, value in kept).replace(INK, "currentColor")

    def places(attribute: re.Match[str]) -> str:
        rounded = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}", attribute[0])
        return " " + " ".join(rounded.split())

    def tag(found: re.Match[str]) -> str:
        text = _PLACED.sub(places, _STYLED.sub(attributes, found[0]))
        text = text.replace(' id="', f' id="{name}-').replace(' xlink:href="#', f' href="#{name}-')
        return text.replace('="url(#', f'="url(#{name}-')

    _, _, inside = drawn.partition("<svg")[2].partition(">")
    inside = re.sub(r"<[^>]+>", tag, _LEFT_OUT.sub("", inside))
    said = escape(_line(f"{drawing.title}. {drawing.description}"))
    box = f'viewBox="0 0 {72 * WIDTH:g} {72 * drawing.height:.6g}"'
    return f'<svg {box} role="img" aria-label="{said}" stroke-linejoin="round">{inside.strip()}\n'


def _line(text: str) -> str:
    return " ".join(printable(text).split())


# Parts of plots


def _grid(
    canvas: Canvas,
    count: int = 1,
    columns: int = 1,
    *,
    margins: tuple[float, float, float, float] = (0.7, 0.15, 0.5, 0.45),
    gaps: tuple[float, float] = (0.5, 0.5),
) -> list[Axes]:
    """Axes row by row. Margins (left, right, top, bottom) and gaps (across, down) in inches."""
    (width, height), (left, right, top, bottom) = canvas.get_size_inches(), margins
    rows = ceil(count / columns)
    wide = (width - left - right - (columns - 1) * gaps[0]) / columns
    high = (height - top - bottom - (rows - 1) * gaps[1]) / rows
    found = []
    for place in range(count):
        x = left + place % columns * (wide + gaps[0])
        y = height - top - high - place // columns * (high + gaps[1])
        found.append(canvas.add_axes((x / width, y / height, wide / width, high / height)))
    return found


def _legend(canvas: Canvas, columns: int = 4) -> None:
    """Above everything, each label once."""
    known: dict[str, Any] = {}
    for axes in canvas.axes:
        marks, labels = axes.get_legend_handles_labels()
        for label, mark in zip(labels, marks, strict=True):
            known.setdefault(label, mark)
    canvas.legend(
        known.values(), known, loc="upper left", ncols=columns, borderaxespad=0.1,
        handlelength=1.8, columnspacing=1.2, labelspacing=0.25,
    )  # fmt: skip


def _dots(axes: Axes, places: Iterable[Place], size: float, label: str) -> None:
    x, y = zip(*places, strict=True)
    axes.plot(x, y, "o", ms=size, mew=0, color=GREY, label=label, zorder=1.5)


def _boxes(axes: Axes, boxes: Iterable[Box], **looks: Any) -> None:
    """Rectangles as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    corners: list[tuple[float, float]] = []
    for left, right, low, high in boxes:
        corners += ((left, low), (right, low), (right, high), (left, high), (left, low))
    if corners:
        codes = [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY] * (len(corners) // 5)
        axes.add_patch(PathPatch(Outline(corners, codes), **looks))


def _of_generations(axes: Axes, run: Run, beyond: float = 0.0) -> None:
    """An x axis of generations, and as far `beyond` the last."""
    from matplotlib.ticker import MaxNLocator

    last = len(run.generations) - 1
    places = MaxNLocator(nbins=9 if axes.bbox.width > 200 else 5, integer=True)
    axes.set_xlim(-0.6, last + 0.6 + beyond)
    axes.set_xticks([at for at in places.tick_values(0, max(last, 1)) if 0 <= at <= last])


def _logarithmic(axes: Axes, which: str, low: float, high: float) -> None:
    """The axis `x` or `y` from low to high, with round numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    subs = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0] if high < 8 * low else [1.0, 2.0, 5.0]
    subs = subs if high < 300 * low else [1.0]
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _shown(values: Iterable[float | None]) -> list[float]:
    """What cannot be drawn as not a number, which leaves a gap."""
    return [value if value is not None and isfinite(value) else nan for value in values]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in _shown(values) if isfinite(value)]


def _reach(values: Iterable[float | None], also: Iterable[float | None]) -> tuple[float, float]:
    """Ends of an axis: all of `also`, and the values but those that lie far above the others."""
    known, must = _known(values), _known(also)
    low, high = min([*known, *must], default=0.0), max([*known, *must], default=1.0)
    if len(known) > 7:
        lower, _, upper = quantiles(known, n=4)
        high = min(high, max([upper + 3 * (upper - lower), *must]))
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _course(values: Sequence[Any], most: int = 30) -> dict[str, Any]:
    """Looks of a line over generations; up to so many are marked each."""
    return {"color": BLUE, "lw": 1.6, "ms": 3.5, "marker": "s" if len(values) <= most else ""}


def _knob_ticks(knob: Scale) -> tuple[list[float], list[str]]:
    """Places in a knob's range and the values there: round ones, or the ends and the middle."""
    values = [knob.decode(unit) for unit in (0.0, 0.5, 1.0)]
    if knob.kind == "log10":
        low, _, high = (log10(value) for value in values)
        powers = range(ceil(low - 1e-9), floor(high + 1e-9) + 1)
        if len(powers) > 1:
            values = [10.0**power for power in powers[:: ceil(len(powers) / 4)]]
    values = list(dict.fromkeys(values))
    places = [min(max(knob.encode(value), 0.0), 1.0) for value in values]
    return places, [f"{value:.3g}" for value in values]


# Score over generations


class _Candidate(NamedTuple):
    """One that is settled: of a search a candidate, of a calibration an evaluation."""

    x: float
    score: float  # not a number: it failed
    point: tuple[float, ...]


def _candidates(run: Run) -> Iterator[_Candidate]:
    """Those of full generations; where all are short, of these."""
    has_full = any(generation.is_full for generation in run.state.generations)
    for generation in run.state.generations if run.is_search else ():
        failed = {end.candidate for end in generation.failed}
        count = len(generation.points)
        for place, score in enumerate(generation.scores()):
            if generation.is_full == has_full and (score is not None or place in failed):
                x = generation.number + 0.7 * ((place + 0.5) / count - 0.5)
                yield _Candidate(x, _shown([score])[0], generation.points[place])
    if run.plan.phase == "calibration":
        for place, one in enumerate(one for one in run.ended if one.is_final):
            yield _Candidate(place, _shown([one.score])[0], one.point)


class _Fresh(NamedTuple):
    """A mean on fresh seeds, with its 95 % interval: of a single score, that."""

    kind: str
    seeds: int
    mean: float
    low: float
    high: float


def _fresh(run: Run) -> Iterator[_Fresh]:
    """The baseline and the winner on the seeds that both have a score on, finalists on theirs."""
    baseline = [one for one in run.arms if (one.comparison, one.name) == ("reference", BASELINE)]
    winner = [one for one in run.arms if one.comparison == "winner"][:1]
    both = [{seed for seed, score in one.scores.items() if score is not None}
            for one in (*baseline, *winner)]  # fmt: skip
    shared = set.intersection(*both) if all(both) and both else set.union(set(), *both)
    finalists = [one for one in run.arms if one.comparison == "finalists"]
    for kind, arms in (("baseline", baseline), ("finalist", finalists), ("winner", winner)):
        for arm in arms:
            mine = (s for seed, s in arm.scores.items() if arm in finalists or seed in shared)
            if scores := _known(mine):
                mean = fmean(scores)
                yield _Fresh(kind, len(scores), mean, *(interval(scores, 0.05) or (mean, mean)))


def _scores(run: Run) -> Drawing | None:
    own, fresh = list(_candidates(run)), list(_fresh(run))
    if not own:
        return None
    failed, has_noise = sum(isnan(one.score) for one in own), run.noise_band is not None
    said = [f"{counted(len(own), 'score')}, {failed or 'none'} of them failed."]
    if run.baseline is not None and run.noise_band is not None:
        ends = " to ".join(map(number, run.noise_band))
        said.append(f"The baseline's mean is {number(run.baseline.mean)}, its noise band {ends}.")
    known = [one for one in run.generations if one.mean is not None and run.is_search]
    for one in dict.fromkeys((*known[:1], *known[-1:])):
        said.append(f"Generation {one.number}: best {number(one.best)}, mean {number(one.mean)}.")
    if known and run.best_so_far is not None:
        luck = f", by luck alone {number(run.luck_so_far)}" if run.luck_so_far is not None else ""
        said.append(f"Best so far: {number(run.best_so_far)}{luck}.")
    for mean in fresh:
        ends = f"{number(mean.low)} to {number(mean.high)}"
        said.append(f"{mean.kind} on {mean.seeds} fresh seeds: {number(mean.mean)} ({ends}).")
    caption = (
        "A search that finds something leaves the band of the baseline's noise and stays below "
        "what luck alone would give the best of as many candidates.",
        "Only means on fresh seeds, at the right with 95 % intervals, say how good a configuration "
        "is: the best of many noisy scores is the luckiest too.",
        "Crosses at the edge are failures.",
        "The baseline's noise is not known, so no band shows what is chance.",
    )
    tells = (has_noise and run.is_search, bool(fresh), failed > 0, not has_noise)
    return Drawing(
        title="Score over generations" if run.is_search else "The baseline's score over seeds",
        caption=" ".join(compress(caption, tells)),
        description=" ".join(said),
        height=3.5,
        paint=lambda canvas: _paint_scores(canvas, run, own, fresh),
    )


def _paint_scores(
    canvas: Canvas, run: Run, own: Sequence[_Candidate], fresh: Sequence[_Fresh]
) -> None:
    (axes,) = _grid(canvas, margins=(0.75, 0.15, 0.72, 0.5))
    generations = run.generations if run.is_search else ()
    band = _known(run.noise_band or ())
    baseline = _known([run.baseline.mean] if run.baseline else ())
    best = _shown(one.best_so_far for one in generations)
    luck = _shown(one.luck_so_far for one in generations)
    means = [one.mean for one in fresh]
    low, high = _reach((one.score for one in own), [*band, *baseline, *best, *luck, *means])
    if len(band) == 2:
        axes.axhspan(*band, label="baseline's noise, ± 2 sd", **NOISE)
    for mean in baseline:
        axes.axhline(mean, color=INK, lw=1, label="baseline, mean")
    inside = [(one.x, one.score) for one in own if one.score <= high]
    if inside:
        size = 2.4 if len(own) > 300 else 3.6
        _dots(axes, inside, size, "candidate" if generations else "one seed")
    above = [one.x for one in own if one.score > high]
    failed = [one.x for one in own if isnan(one.score)]
    edge = {"clip_on": False, "ms": 5, "ls": ""}
    if above:
        axes.plot(above, [high] * len(above), "^", color=GREY, label="above the plot", **edge)
    if failed:
        axes.plot(failed, [high] * len(failed), "x", color=RED, label="failed", **edge)
    numbers = [one.number for one in generations]
    if generations and len(own) > len(failed):
        mean_scores = _shown(one.mean for one in generations)
        axes.plot(numbers, mean_scores, label="generation's mean", **_course(numbers))
    steps = [edge for one in numbers for edge in (one - 0.5, one + 0.5)]
    for y, looks in (
        (best, {"color": GREEN, "lw": 2.2, "label": "best so far"}),
        (luck, {"color": PURPLE, "lw": 1.6, "ls": "--", "label": "best by luck alone"}),
    ):
        if _known(y):
            axes.plot(steps, [value for value in y for _ in range(2)], **looks)
    beyond = max(1.6, len(numbers) / 7) if fresh else 0.0
    axes.set(ylim=(low, high), ylabel="score (lower is better)")
    axes.set_xlabel("generation" if generations else "evaluation, in the order of their ends")
    if generations:
        _of_generations(axes, run, beyond)
    if len(own) == len(failed):
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no score yet", transform=axes.transAxes, ha="center", color=RED)
    if fresh:
        _paint_fresh(axes, fresh, axes.get_xlim()[1] - beyond, beyond)
    _legend(canvas, 3)


def _paint_fresh(axes: Axes, fresh: Sequence[_Fresh], begin: float, width: float) -> None:
    """Means with their intervals, beside what the search saw."""
    axes.axvline(begin, color=INK, lw=0.8, ls=":")
    below = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "top"}
    axes.text(begin + width / 2, -0.03, "fresh\nseeds", linespacing=0.95, **below)
    looks = {
        "baseline": {"fmt": "o", "color": INK, "mfc": "none"},
        "finalist": {"fmt": "v", "color": SKY, "mec": INK},
        "winner": {"fmt": "D", "color": ORANGE, "mec": INK},
    }
    for place, one in enumerate(fresh):
        x, reach = begin + width * (place + 0.7) / (len(fresh) + 0.4), [one.mean - one.low]
        label = f"{one.kind}, fresh seeds"
        looked = looks[one.kind] | {"lw": 1.4, "ms": 5.5, "label": label}
        axes.errorbar(x, one.mean, [reach, [one.high - one.mean]], **looked)


# Forests: differences with their intervals


class _Row(NamedTuple):
    """A line of a forest."""

    name: str
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    is_sure: bool = False  # more than chance
    is_decisive: bool = False


class _Forest(NamedTuple):
    """Intervals on one axis."""

    label: str
    rows: Sequence[_Row]
    lines: Mapping[float, str]  # what to compare with; the first is the middle
    has_noise: bool = False  # a band of one sd to either side

    @property
    def names(self) -> list[str]:
        """Of the rows, long ones in two lines."""
        names = [_line(row.name) for row in self.rows[:MOST_ROWS]]
        return ["\n".join(wrap(one, NAME_WIDTH)) for one in shortened(names, 2 * NAME_WIDTH - 4)]

    @property
    def height(self) -> float:
        """In inches, with its axis."""
        row = ROW * (1.5 if any("\n" in name for name in self.names) else 1.0)
        return 0.5 + row * max(2, len(self.names))


def _forests(title: str, caption: str, said: Iterable[str], *forests: _Forest) -> Drawing:
    """One below the other."""

    def paint(canvas: Canvas) -> None:
        top, whole = 0.35, canvas.get_size_inches()[1]
        for forest in forests:
            bottom = whole - top - forest.height + 0.5
            _paint_forest(_grid(canvas, margins=(2.55, 0.7, top, bottom))[0], forest)
            top += forest.height + 0.1
        _legend(canvas, 5)

    hidden = [row.name for forest in forests for row in forest.rows[MOST_ROWS:]]
    return Drawing(
        title=title,
        caption=caption + f" Not shown: {listed(hidden, 20)}." * bool(hidden),
        description=" ".join(said),
        height=0.35 + sum(forest.height + 0.1 for forest in forests),
        paint=paint,
    )


def _paint_forest(axes: Axes, forest: _Forest) -> None:
    """Means stand in figures at the right.

    What reaches far beyond the others is cut: a mean beyond the plot is an arrow at its edge.
    """
    rows, middle = forest.rows[:MOST_ROWS], next(iter(forest.lines))
    sizes = [_known((row.low, row.mean, row.high)) for row in rows if _known([row.mean])]
    reaches = sorted(max(abs(end - middle) for end in ends) for ends in sizes)
    usual = reaches[len(reaches) // 2] if reaches else 0.0
    most = 8 * usual if usual and reaches[-1] > 20 * usual else inf
    ends = [min(max(end, middle - most), middle + most) for own in sizes for end in own]
    low, high = _reach((), [*ends, *forest.lines, *((-1.0, 1.0) if forest.has_noise else ())])
    axes.set(xlim=(low, high), ylim=(len(rows) - 0.4, -0.6), xlabel=forest.label)
    axes.set_yticks(range(len(rows)), forest.names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    if forest.has_noise:
        axes.axvspan(-1, 1, label="noise, ± 1 sd", **NOISE)
    for (at, label), line in zip(forest.lines.items(), ("-", "--"), strict=False):
        axes.axvline(at, color=INK if line == "-" else PURPLE, ls=line, lw=1.2, label=label)
    beside = {"transform": axes.get_yaxis_transform(), "va": "center"}
    for place, row in enumerate(rows):
        for mean in _known([row.mean]):
            at, colour = min(max(mean, low), high), ORANGE if row.is_decisive else BLUE
            mark = "D" if row.is_decisive else "o"
            label = "decisive, " * row.is_decisive
            label += "more than chance" if row.is_sure else "may be chance"
            looks = {"mfc": colour if row.is_sure else "none", "mec": colour, "label": label}
            axes.plot(_shown((row.low, row.high)), [place] * 2, color=colour, lw=1.8)
            axes.plot([], [], mark, ms=6, **looks)  # for the legend, which knows no arrows
            mark = mark if at == mean else "<" if at == low else ">"
            axes.plot(at, place, mark, ms=6, clip_on=False, **looks)
            figure = _signed(mean, ".3g") if 0.0 in forest.lines else number(mean)
            axes.text(1.02, place, figure, **beside)
        if not _known([row.mean]):
            axes.text(0.5, place, "no score", ha="center", color=RED, style="italic", **beside)


def _signed(value: float, form: str) -> str:
    return f"{value:+{form}}".replace("-", "\N{MINUS SIGN}")


def _gains(run: Run) -> Drawing | None:
    if not run.gains or run.findings is None:
        return None
    rows, said = [], []
    for one in run.gains:
        gain, against = one.gain, one.against.removesuffix(" (control)")
        name = one.name.removesuffix(" (control)") + f" over {against}" * (against != BASELINE)
        shares = (gain.mean, gain.lower, gain.upper)
        mean, low, high = (None if share is None else 100 * share for share in shares)
        is_sure = gain.is_shown or gain.is_loss
        name_n = f"{name}, n = {gain.pairs}"
        rows.append(_Row(name_n, mean, low, high, is_sure, one.is_decisive))
        size = "no pair with a score" if gain.mean is None else better(gain.mean)
        reach = "" if low is None or high is None else f", gain {low:+.3g} to {high:+.3g}%"
        said.append(f"{one.name} against {one.against}: {size}{reach}, n = {gain.pairs}.")
    asked = f"a Go needs {percent(run.findings.asked)}"
    lines = {0.0: BASELINE, 100 * run.findings.asked: asked}
    caption = (
        "Each end of an interval is missed with a probability of "
        f"{percent(run.gains[0].gain.level)}; n: seeds that both have a score on. The decisive "
        "gain is on seeds that were used for no "
        "selection: what wins on the seeds that it was picked on is flattered by that choice."
    )
    forest = _Forest("gain (%), right is better", rows, lines)
    return _forests("Gains on fresh seeds", caption, [*said, f"Asked: {asked}."], forest)


def _effects(run: Run) -> Drawing | None:
    if run.campaign is not None:
        return _campaign(run.campaign)
    found = run.check
    if found is None or not found.knobs:
        return None
    scale, unit = (found.noise, "sd of the noise") if found.noise > 0 else (1.0, "score")
    rows, said = [], []
    for knob in found.knobs:
        for end in knob.ends:
            name = f"{knob.knob}, {end.end}"
            if end.difference is None:
                rows.append(_Row(name))
                said.append(f"{name}: too few healthy seeds.")
                continue
            mean, reach = end.difference / scale, found.t_limit * (end.standard_error or 0) / scale
            rows.append(_Row(name, mean, mean - reach, mean + reach, end.moves))
            moves = "moves the score" if end.moves else "may be chance"
            said.append(f"{name}: {mean:+.3g} {unit}, {moves}.")
    said += [f"Not measured yet: {listed(found.pending)}."] * bool(found.pending)
    caption = (
        f"Each knob is moved from the {found.centre} to an end of its range, all others held, on "
        "the same seeds. Filled: more than chance, all ends considered together."
    )
    label = f"change of the score ({unit}), left is better"
    forest = _Forest(label, rows, {0.0: found.centre}, has_noise=found.noise > 0)
    return _forests("Which knobs move the score", caption, said, forest)


def _campaign(own: CampaignReport) -> Drawing:
    """Conditions; below, effects of factors or, without factors, conditions against controls."""
    control = next((one for one in own.rows if one.is_control and one.mean is not None), None)
    mains = [one for one in own.effects if not one.is_interaction]
    both = telling([one for one in own.effects if one.is_interaction], MOST_ROWS - len(mains))
    named = [(name_of(one), one.difference) for one in (*mains, *both)] or [
        (f"{row.name} - {one.control}", one.difference)
        for row in own.rows
        for one in row.comparisons
    ]
    is_relative = all(one.percent is not None for _, one in named if one.seeds)
    conditions = [_Row(one.name, one.mean, one.lower, one.upper, True) for one in own.rows]
    differences = [
        _Row(name, one.percent, one.percent_lower, one.percent_upper, one.is_found)
        if is_relative
        else _Row(name, one.mean, one.lower, one.upper, one.is_found)
        for name, one in named
    ]
    middle = (control.mean if control else own.reference) or 0.0
    measure = _line(own.measure)
    label = f"difference ({'%' if is_relative else measure}), left is better"
    forests = [
        _Forest(f"{measure} (lower is better)", conditions, {middle: "control" if control else ""}),
        _Forest(label, differences, {0.0: ""}),
    ]
    settled = f"{own.evaluations - own.unsettled} of {own.evaluations}"
    said = [f"{own.name}: {len(own.rows)} conditions, {settled} evaluations settled."]
    said += [f"{row.name}: {number(row.mean, none='no score')}." for row in conditions]
    said += [f"{name}: {in_words(one)}." for name, one in named]
    caption = (
        "Above, each condition's mean over the seeds. Seeds are shared, so that a difference may "
        "be sure although intervals overlap. Below, differences paired by seed; filled: more than "
        "chance, all considered together."
    )
    title = "Conditions, and what sets them apart"
    return _forests(title, caption, said, *forests[: 1 + bool(named)])


# Knobs, a chart each


def _of_knobs(
    run: Run, sizes: Sequence[float], paint_one: Callable[[Axes, Knob, int], None], **said: str
) -> Drawing:
    """Small multiples of the knobs with the largest sizes, in the order of the space."""
    ranked = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    shown, hidden = sorted(ranked[:MOST_KNOBS]), sorted(ranked[MOST_KNOBS:])

    def paint(canvas: Canvas) -> None:
        margins = (0.6, 0.12, 0.55, 0.42)
        grid = _grid(canvas, len(shown), 3, margins=margins, gaps=(0.6, 0.5))
        for place, axes in zip(shown, grid, strict=True):
            axes.set_title(_line(run.knobs[place].name), loc="left", pad=4)
            paint_one(axes, run.knobs[place], place)
        _legend(canvas, 5)

    if hidden:
        names = listed(run.knobs[place].name for place in hidden)
        said["caption"] += f" Not shown, as they matter or move less: {names}."
    return Drawing(height=0.5 + 1.65 * ceil(len(shown) / 3), paint=paint, **said)


def _thinned(count: int, knobs: int) -> slice:
    """So many of each knob's dots that all of them are no more than `MOST_DOTS`."""
    return slice(None, None, ceil(count * min(knobs, MOST_KNOBS) / MOST_DOTS))


def _paths(run: Run) -> Drawing | None:
    own = list(_candidates(run)) if run.is_search else []
    if not own:
        return None
    means = {one.number: one.mean_point for one in run.generations if one.mean_point is not None}
    moves, said = [], []
    for place, knob in enumerate(run.knobs):
        at = [min(max(point[place], 0.0), 1.0) for point in means.values()][-1:]
        end = knob.recommended_unit if knob.recommended_unit is not None else (at or [nan])[0]
        moves.append(0.0 if isnan(end) else abs(end - knob.baseline_unit))
        text = f"{knob.name}: baseline {number(knob.baseline)}"
        for unit in at:
            text += f", mean point {number(run.space.knobs[place].decode(unit))}"
        text += "" if knob.recommended is None else f", recommended {number(knob.recommended)}"
        said.append(f"{text}.")
    dots = own[_thinned(len(own), len(run.knobs))]

    def paint(axes: Axes, knob: Knob, place: int) -> None:
        _dots(axes, [(one.x, one.point[place]) for one in dots], 2.2, "candidate")
        history = run.replayed[0].history if run.replayed[0] else ()
        ends = [[one.mean_point[place] + sign * one.deviations[place] for one in history]
                for sign in (-1, 1)]  # fmt: skip
        x, looks = [one.generation for one in history], {"color": BLUE, "alpha": 0.22, "lw": 0}
        axes.fill_between(x, *ends, label="± 1 sd", **looks)
        y = [point[place] for point in means.values()]
        axes.plot(list(means), y, label="mean point", **_course(y, most=2))
        axes.axhline(knob.baseline_unit, label="baseline", **BASE)
        beyond = max(0.8, len(run.generations) / 12)
        _of_generations(axes, run, beyond)
        at, end = axes.get_xlim()[1] - beyond / 2, _shown([knob.recommended_unit])
        axes.plot(at, end, "D", ms=6, mfc=ORANGE, mec=INK, label="recommended", clip_on=False)
        axes.set_yticks(*_knob_ticks(run.space.knobs[place]))
        axes.set_ylim(-0.04, 1.04)

    caption = (
        "Over generations, the line is the mean point of the search's distribution, the band one "
        "standard deviation about it. A band that narrows away from the baseline has found "
        "something; one that stays wide has not, or the knob does not matter."
    )
    words = {"title": "Each knob's path", "caption": caption, "description": " ".join(said)}
    return _of_knobs(run, moves, paint, **words)


def _marginals(run: Run) -> Drawing | None:
    own = run.marginals
    if not own or not own[0].units:
        return None
    names, said = {None: "too few evaluations to say", True: "stands", False: "may be chance"}, []
    for one in own:
        slope = f"{number(one.slope, 3)} ± {number(one.slope_error, 3)} per standard deviation, "
        said.append(f"{one.knob}: {slope * (one.slope is not None)}{names[one.stands]}.")
    means = (abs(value) for one in own for value in one.bin_means)
    high = _reach((abs(value) for one in own for value in one.excess), means)[1]
    kept = _thinned(len(own[0].units), len(own))

    def paint(axes: Axes, knob: Knob, place: int) -> None:
        one = own[place]
        y = [min(max(value, -high), high) for value in one.excess[kept]]
        _dots(axes, zip(one.units[kept], y, strict=True), 2.2, "candidate")
        axes.axhline(0, color=INK, lw=0.8)
        axes.axvline(knob.baseline_unit, label="baseline", **BASE)
        for unit in _known([knob.recommended_unit]):
            axes.axvline(unit, color=ORANGE, lw=2, ls="-.", label="recommended")
        bins = (one.bin_units, _shown(one.bin_means), _shown(one.bin_errors))
        looks = {"fmt": "D", "ms": 4, "lw": 1.4, "color": BLUE}
        if one.bin_units:
            axes.errorbar(*bins, label="mean ± standard error", **looks)
        axes.set(xlim=(-0.04, 1.04), ylim=(-high, high))
        axes.set_xticks(*_knob_ticks(run.space.knobs[place]))
        axes.set_title("stands" * bool(one.stands), loc="right", pad=4, fontstyle="italic")

    caption = (
        "A candidate's score less its generation's mean, lower is better, against where it lay in "
        "the knob's range. No experiment: the search chose where to look, and knobs move together. "
        "What stands is above its error in a regression on all knobs."
    )
    words = {"title": "Each knob's marginal effect", "caption": caption}
    sizes = [abs(one.slope or 0.0) for one in own]
    return _of_knobs(run, sizes, paint, **words, description=" ".join(said))


# The search


def _step_size(run: Run) -> Drawing | None:
    every = [(one.number, one.step_size, one.axis_ratio) for one in run.generations]
    if (found := run.replayed[0]) is not None:
        every = [(one.generation, one.step_size, one.axis_ratio) for one in found.history]
    known = [(at, size, ratio) for at, size, ratio in every if size and ratio]
    if not known:
        return None
    numbers, *courses = zip(*known, strict=True)

    def paint(canvas: Canvas) -> None:
        grid = _grid(canvas, 2, 2, margins=(0.6, 0.15, 0.3, 0.45), gaps=(0.7, 0))
        for axes, y, title in zip(grid, courses, ("step size", "axis ratio"), strict=True):
            axes.plot(numbers, y, **_course(numbers))
            low, high = min(y), max(y)
            middle = (low * high) ** 0.5  # half a decade at least, or noise looks like a trend
            _logarithmic(axes, "y", min(low / 1.15, middle / 1.8), max(high * 1.15, middle * 1.8))
            _of_generations(axes, run)
            axes.set_title(title, loc="left")
            axes.set_xlabel("generation")
            axes.grid(axis="y")

    said = (
        f"After generation {at}: step size {size:.3g}, axis ratio {ratio:.3g}."
        for at, size, ratio in dict.fromkeys((known[0], known[-1]))
    )
    return Drawing(
        title="How wide the search looks",
        caption="A step size that falls means that the search closes in; one that grows, that it "
        "follows a slope or sees only noise. An axis ratio near 1 is a sphere.",
        description=" ".join(said),
        height=2.3,
        paint=paint,
    )


def _correlations(run: Run) -> Drawing | None:
    found, names = run.replayed[0], [_line(knob.name) for knob in run.space.knobs]
    if found is None or len(names) < 2:
        return None
    limit = inf if found.correlation_by_chance is None else found.correlation_by_chance
    table, places = found.correlations, range(len(names))
    pairs = [(table[row][column], row, column) for row in places for column in range(row)]
    pairs.sort(key=lambda pair: -abs(pair[0]))
    beyond = [pair for pair in pairs if abs(pair[0]) > limit]
    side, room = min(0.42 * (len(names) - 1), 4.4), 0.25 + 0.068 * max(map(len, names))

    def cells(some: Iterable[tuple[float, int, int]], half: float) -> Iterator[Box]:
        return ((x - half, x + half, y - half, y + half) for _, y, x in some)

    def paint(canvas: Canvas) -> None:
        (axes,) = _grid(canvas, margins=(room, max(0.1, WIDTH - room - side), 0.1, room))
        for tenth in {*range(-10, 11)} - {0}:
            own = [pair for pair in pairs if copysign(ceil(abs(10 * pair[0])), pair[0]) == tenth]
            looks = {"color": BLUE if tenth > 0 else RED, "alpha": 0.8 * abs(tenth) / 10, "lw": 0}
            _boxes(axes, cells(own, 0.5), **looks)
        _boxes(axes, cells(beyond, 0.46), fill=False, ec=INK, lw=1.4)
        for pair in pairs if len(names) <= 12 else beyond:
            text = _signed(pair[0], ".2f") if len(names) <= 12 else "+" if pair[0] > 0 else "-"
            centred = {"ha": "center", "va": "center", "fontsize": FONT - 2.5}
            axes.text(*pair[:0:-1], text, weight="bold" if pair in beyond else "normal", **centred)
        axes.set(xlim=(-0.5, len(names) - 1.5), ylim=(len(names) - 0.5, 0.5))
        axes.set_yticks(places[1:], names[1:])
        axes.set_xticks(places[:-1], names[:-1], rotation=90)
        axes.tick_params(length=0, labelsize=min(FONT - 1, 65 * side / len(names)))
        axes.spines[:].set_visible(False)

    said = listed(f"{names[row]} with {names[column]} {r:+.2f}" for r, row, column in pairs[:8])
    return Drawing(
        title="Which knobs go together",
        caption="Correlations of the search's distribution at last: +1 (blue) means that two knobs "
        "rise together, -1 (red) that one falls as the other rises, along a valley of "
        "the score. "
        + f"On pure noise the strongest of one search in twenty is beyond {limit:.2f}: pairs that "
        "are have a border." * isfinite(limit),
        description=f"The strongest of {counted(len(pairs), 'pair')}: {said}. More than chance: "
        f"{len(beyond)}.",
        height=0.1 + side + room,
        paint=paint,
    )


# Devices


def _unit(seconds: float) -> tuple[str, float]:
    """In what so many seconds are read, and its length."""
    return ("s", 1.0) if seconds < 300 else ("min", 60.0) if seconds < 3 * 3600 else ("h", 3600.0)


def _device_time(run: Run) -> Drawing | None:
    kinds = ("useful", "wasted", "idle", "reserved", "planned")
    hours = {kind: [float(getattr(one, kind) or 0.0) for one in run.usage] for kind in kinds}
    charged = [sum(each) for each in zip(*(hours[kind] for kind in kinds[:3]), strict=True)]
    if not any(map(sum, hours.values())):
        return None
    unit, size = _unit(3600 * max(charged or [0.0]))
    amounts = {kind: [3600 * value / size for value in own] for kind, own in hours.items()}
    looks: dict[str, dict[str, Any]] = {
        "useful": {"fc": BLUE, "ec": "none"},
        "wasted": {"fc": RED, "hatch": "////", "ec": INK, "lw": 0.3},
        "idle": {"fc": GREY, "alpha": 0.45, "ec": "none"},
        "reserved": {"fill": False, "ls": "--", "ec": INK, "lw": 0.8},
    }
    parts = [one.part for one in run.usage]
    names = [part.replace("generation ", "") if run.is_search else part for part in parts]
    names = [name.replace("generation 0", "evaluations") for name in names]
    is_long, step = len(names) > 6, ceil(len(names) / 20)
    named = [x for x, name in enumerate(names) if not name.isdecimal() or int(name) % step == 0]
    widths = [1.0 if name.isdecimal() else max(1.0, len(names) / 24) for name in names]
    ends = list(accumulate(widths, initial=0.0))

    def paint(canvas: Canvas) -> None:
        (axes,) = _grid(canvas, margins=(0.7, 0.15, 0.4, 0.9 if is_long else 0.35))
        tops = [0.0] * len(names)
        for kind, look in looks.items():
            below, tops = tops, [low + own for low, own in zip(tops, amounts[kind], strict=True)]
            spans = zip(ends, ends[1:], below, tops, strict=False)
            boxes = [(x + 0.1, end - 0.1, low, top) for x, end, low, top in spans if top > low]
            _boxes(axes, boxes, label=kind, **look)
        if any(planned := amounts["planned"]):
            edges = [edge for x, end in pairwise(ends) for edge in (x, end, nan)]
            y = [value or nan for value in planned for _ in range(3)]
            axes.plot(edges, y, color=PURPLE, lw=2, label="planned")
        usual = max(3600 * value / size for value in (*charged, *hours["planned"])) or 1.0
        top = max(1.06 * usual, min(1.06 * max(tops), 3 * usual))
        axes.set(xlim=(-0.2, ends[-1] + 0.2), ylim=(0, top))
        middles = [(ends[x] + ends[x + 1]) / 2 for x in named]
        axes.set_xticks(middles, [names[x] for x in named], rotation=90 if is_long else 0)
        axes.set_ylabel(f"device time ({unit})")
        _legend(canvas, 5)

    said = listed(f"{sum(own):.3g} {unit} {kind}" for kind, own in amounts.items() if sum(own))
    return Drawing(
        title="Device time",
        caption="By part of the run; figures are generations. Useful and wasted time is charged; "
        "idle is what slots were there for beyond that: starting up, waiting for the last "
        "evaluation of a generation. What is reserved is a worst case, and may reach beyond the "
        "plot.",
        description=f"In {counted(len(names), 'part')}: {said}.",
        height=3.0 if is_long else 2.5,
        paint=paint,
    )


def _lines_of(attempts: Sequence[Attempt], end: float) -> list[int]:
    """Of each attempt its slot; where that is not on record, the first that is free."""
    free, found = list[float](), []
    for one in attempts:
        slot = one.slot
        if slot is None:
            slot = next((place for place, at in enumerate(free) if at <= one.began), len(free))
        free += [0.0] * (slot + 1 - len(free))
        free[slot] = end if one.ended is None else one.ended
        found.append(slot)
    return found


def _kind(one: Attempt) -> str:
    if one.status is None:
        return "in flight"
    if one.status == Status.OK:
        return "healthy, comparison" if one.comparison else "healthy"
    is_gone = is_lost(one.status, one.cause) or one.status == Status.CANCELLED
    return "lost" if is_gone else "failed"


def _timeline(run: Run) -> Drawing | None:
    attempts = run.attempts
    if not attempts:
        return None
    end = max(run.edges_ms[-1] / 1000, *(max(one.began, one.ended or 0) for one in attempts), 0.001)
    (unit, size), lines = _unit(end), _lines_of(attempts, end)
    counts, slots = Counter(map(_kind, attempts)), 1 + max(lines)
    shown = min(slots, MOST_SLOTS)
    looks: dict[str, tuple[float, str, dict[str, Any]]] = {
        "healthy": (0.38, "", {"fc": BLUE}),
        "healthy, comparison": (0.2, "", {"fc": GREEN}),
        "failed": (0.38, "x", {"fc": RED}),
        "lost": (0.38, "o", {"fc": GREY}),
        "in flight": (0.38, ">", {"fill": False, "ec": INK, "lw": 0.8}),
    }

    def paint(canvas: Canvas) -> None:
        (axes,) = _grid(canvas, margins=(0.6, 0.15, 0.35, 0.45))
        gap = 0.0008 * end  # so that neighbours are told apart
        for kind, (half, mark, look) in looks.items():
            own = [(one.began, max(one.began + gap, (one.ended or end) - gap), line)
                   for one, line in zip(attempts, lines, strict=True)
                   if _kind(one) == kind and line < shown]  # fmt: skip
            boxes = [(x / size, at / size, y - half, y + half) for x, at, y in own]
            _boxes(axes, boxes, label="" if mark else kind, **{"lw": 0} | look)
            if own and mark:
                marked = {"ms": 5, "mfc": "none", "mec": INK, "mew": 1.2, "clip_on": False}
                x = [(x + at) / 2 / size for x, at, _ in own]
                axes.plot(x, [line for *_, line in own], mark, label=kind, **marked)
        for session in run.sessions[1:]:
            axes.axvline(session.began / size, color=INK, ls=":", lw=1, label="resumed")
        axes.set(xlim=(0, end / size), ylim=(shown - 0.4, -0.6), ylabel="slot")
        axes.set_yticks(range(0, shown, ceil(shown / 16)))
        axes.set_xlabel(f"time that the run was open ({unit})")
        _legend(canvas, 6)

    caption = ["Gaps are time that was there and not used."]
    if any(one.slot is None for one in attempts):
        caption.append("The record does not say the slots: attempts are laid side by side.")
    if slots > shown:
        caption.append(f"Slots from {shown} on are not shown.")
    said = listed(f"{count} {kind}" for kind, count in counts.items())
    return Drawing(
        title="Evaluations by slot",
        caption=" ".join(caption),
        description=f"{counted(len(attempts), 'attempt')} on {counted(slots, 'slot')} in "
        f"{counted(len(run.sessions), 'session')}: {said}.",
        height=0.95 + min(6.0, max(0.8, 0.2 * shown)),
        paint=paint,
    )


# Training


def _losses(run: Run) -> Drawing | None:
    own = () if run.directory is None else curves(run.directory, run.state)
    if not own:
        return None
    quantities = list(dict.fromkeys(one.quantity for one in own))
    names = list(dict.fromkeys(one.name for one in own))
    colours, dashes = (INK, ORANGE, GREEN, BLUE, RED, PURPLE), ("--", "-", "-.", ":", "-", "--")

    def paint(canvas: Canvas) -> None:
        grid = _grid(canvas, len(quantities), margins=(0.7, 0.15, 0.4, 0.45))
        for axes, quantity in zip(grid, quantities, strict=True):
            mine = [one for one in own if one.quantity == quantity]
            for one in mine:
                place = names.index(one.name) % len(colours)
                looks = {"color": colours[place], "ls": dashes[place], "lw": 1.6}
                axes.plot(one.steps, _shown(one.values), label=_line(one.name), **looks)
            first, last = min(one.steps[0] for one in mine), max(one.steps[-1] for one in mine)
            if first > 0 and last > 100 * first:
                _logarithmic(axes, "x", first, last)
            high = [one.values[0] for one in mine]
            axes.set_ylim(_reach((value for one in mine for value in one.values), high))
            axes.set(xlabel="step", ylabel=_line(quantity))
        _legend(canvas, 3)

    said = (
        f"{one.name}, seed {one.seed}: {one.quantity} from {number(one.values[0])} at step "
        f"{one.steps[0]:g} to {number(one.values[-1])} at step {one.steps[-1]:g}."
        for one in own
    )
    return Drawing(
        title="Loss curves",
        caption="What a configuration gains early and loses again later is no gain: look whether "
        "the curves still part where they end.",
        description=" ".join(said),
        height=0.5 + 2.5 * len(quantities),
        paint=paint,
    )


PLOTS: dict[str, Plot] = {
    "gains": Plot("verdict", _gains),
    "effects": Plot("verdict", _effects),
    "scores": Plot("scores", _scores),
    "device_time": Plot("budget", _device_time),
    "step_size": Plot("search", _step_size),
    "correlations": Plot("search", _correlations),
    "paths": Plot("knobs", _paths),
    "marginals": Plot("knobs", _marginals),
    "timeline": Plot("evaluations", _timeline),
    "losses": Plot("training", _losses),
}
"""By name, in reading order."""
