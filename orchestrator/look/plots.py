"""Plots of a run with matplotlib, as SVG for a page and as PNG, PDF or SVG for a paper.

A plot is a function that paints on an empty figure and returns its title and how to read it, or
None where the run has nothing to show in it. The colours are those of Okabe and Ito, which
colour-blind readers tell apart; marks, lines and hatches differ too. In dark mode a page inverts
their lightness. Matplotlib is imported when something is drawn, and its pyplot never.
"""

import base64
import io
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import ceil, nan
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from budgets.events import Settled
from budgets.formatting import better_when, percent, printable, shortened
from budgets.stats import interval
from budgets.verdict import BASELINE
from orchestrator.look.attempt_files import Curve, curve
from orchestrator.look.run import Run
from orchestrator.records.runs import ReplayError

INK = "#1b1f24"
GREY, BLUE, GREEN = "#808080", "#0072b2", "#009e73"
ORANGE, RED, PURPLE = "#e69f00", "#d55e00", "#cc79a7"
WIDTH, FONT = 6.4, 9.0  # of a drawing, in inches; of its text, in points
MOST_KNOBS, MOST_ROWS = 12, 40  # charts of knobs; rows of a forest
LABEL_WIDTH = 44  # characters of a forest's row
MOST_DOTS = 200  # of a chart, drawn one by one; more become an image
MOST_CURVES = 6  # of losses

_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE = dict.fromkeys(_INKED, INK) | {
    "font.size": FONT,  # of DejaVu Sans, which comes with matplotlib
    "axes.titlesize": FONT + 1,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # no title moves away from ticks on top: there are none
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a `$` in a name is a `$`
}
_DONE: dict[str, dict[str, Any]] = {  # what a slot's time was for
    "useful": {"fc": BLUE},
    "wasted": {"fc": RED, "hatch": "////", "ec": INK, "lw": 0.3},
    "idle": {"fc": GREY, "alpha": 0.45},
    "running": {"fc": "none", "ec": INK},
}

Texts = tuple[str, str]  # a plot's title, and how to read it


@dataclass(frozen=True)
class Drawing:
    """A plot and its texts: a part of a page, and what a notebook shows."""

    name: str
    title: str
    caption: str  # how to read it
    canvas: Any  # a matplotlib figure

    def file(self, form: str, paper: str = "white") -> bytes:
        """Return it as `png`, `pdf` or `svg`."""
        import matplotlib

        file = io.BytesIO()
        with warnings.catch_warnings(), matplotlib.rc_context(_STYLE):
            warnings.simplefilter("ignore")  # letters that the font lacks: a viewer has other fonts
            self.canvas.savefig(file, format=form, dpi=200, facecolor=paper)
        return file.getvalue()

    def url(self, paper: str = "none") -> str:
        """Return it as an address of an image, so that its styles stay its own."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.file('svg', paper)).decode()}"

    def save(self, path: str | Path) -> Path:
        """Write it as the path's suffix says, as SVG without one, and return the path."""
        file = Path(path)
        file.write_bytes(self.file(file.suffix.removeprefix(".").lower() or "svg"))
        return file

    def _repr_html_(self) -> str:
        return f'<img src="{self.url("white")}">'


def drawings(run: Run) -> dict[str, Drawing]:
    """Return every plot with something to show, by name, in reading order."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    found = dict[str, Drawing]()
    for name, plot in PLOTS.items():
        with matplotlib.rc_context(_STYLE):
            canvas = Canvas((WIDTH, 3.0), layout="constrained")
            if (texts := plot(run, canvas)) is None:
                continue
            legends = (axes.get_legend_handles_labels() for axes in canvas.axes)
            marks = {own: mark for each in legends for mark, own in zip(*each, strict=True)}
            looks = {"handlelength": 1.8, "columnspacing": 1.2, "labelspacing": 0.25}
            if marks:
                canvas.legend(marks.values(), marks, loc="outside upper left", ncols=3, **looks)
        found[name] = Drawing(name, *texts, canvas)
    return found


# What plots share


def _line(text: str) -> str:
    """Return text as one line without characters that steer."""
    return " ".join(printable(text).split())


def _dots(axes: Any, x: Sequence[float], y: Sequence[float | None]) -> None:
    """Draw evaluations behind all else."""
    looks = {"ms": 2.6, "mew": 0, "color": GREY, "zorder": 1.5, "label": "evaluation"}
    axes.plot(x, y, "o", rasterized=len(x) > MOST_DOTS, **looks)


def _series(axes: Any, x: Sequence[float], y: Sequence[float | None], label: str = "") -> None:
    """Draw a line over generations, with marks where there are few."""
    from matplotlib.ticker import MaxNLocator

    axes.plot(x, y, color=BLUE, lw=1.6, marker="." * (len(x) <= 30), ms=6, label=label)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def _limits(
    values: Iterable[float | None], must: Iterable[float | None] = ()
) -> tuple[float, float]:
    """Return the ends of an axis that shows all of `must`, and `values` without far outliers."""
    own, kept = ([one for one in each if one is not None] for each in (values, must))
    if len(own) > 7:
        lower, _, upper = quantiles(own, n=4)
        own = [one for one in own if abs(one - (lower + upper) / 2) <= 3.5 * (upper - lower)]
    low, high = min(own + kept, default=0.0), max(own + kept, default=1.0)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit in which a time is shown, and its length in seconds."""
    return ("s", 1.0) if seconds < 300 else ("min", 60.0) if seconds < 3 * 3600 else ("h", 3600.0)


def _searched(run: Run) -> list[Settled]:
    ends = run.state.ends() if run.is_search else ()
    return [end for end in ends if end.final and end.comparison is None]


# Forests: gains of a search or a campaign, and the effects of a check

_Row = tuple[str, float | None, float | None, float | None, bool]
# name, mean, the ends of its interval, and whether it is more than chance


def _forest(canvas: Any, label: str, rows: Sequence[_Row]) -> Any:
    """Draw the first rows with their intervals, and a line at 0; return the axes."""
    shown = rows[:MOST_ROWS]
    canvas.set_figheight(1.1 + 0.3 * len(shown))
    axes = canvas.subplots()
    axes.axvline(0, color=INK, lw=1.2, label="no difference")
    for at, (_, mean, low, high, is_sure) in enumerate(shown):
        colour, name = (BLUE, "more than chance") if is_sure else ("none", "may be chance")
        axes.plot([low, high], [at, at], color=BLUE, lw=1.8)
        axes.plot([mean], [at], "o", ms=6, mfc=colour, mec=BLUE, label=name)
    axes.set_yticks(range(len(shown)), shortened([_line(row[0]) for row in shown], LABEL_WIDTH))
    axes.set(ylim=(len(shown) - 0.4, -0.6), xlabel=label)
    return axes


def _gains(run: Run, canvas: Any) -> Texts | None:
    if not run.gains:
        return None
    rows = list[_Row]()
    for one in run.gains:
        own, name = one.gain, one.name + f" over {one.against}" * (one.against != BASELINE)
        rows.append((name, own.mean, own.lower, own.upper, one.is_found))
    axes = _forest(canvas, "gain, right is better", rows)
    axes.xaxis.set_major_formatter(lambda share, _: percent(share))
    if run.findings is not None:
        asked = run.findings.asked
        axes.axvline(asked, color=INK, ls="--", label=f"a Go needs {percent(asked)}")
    return "Gains", (
        f"The intervals of the table, the first {MOST_ROWS} of them. A search's first gain "
        "decides: nothing was selected on its seeds."
    )


def _effects(run: Run, canvas: Any) -> Texts | None:
    if (found := run.check) is None:
        return None
    rows, scale = list[_Row](), found.noise or 1.0
    for name, end in ((knob.knob, end) for knob in found.knobs for end in knob.ends):
        if end.difference is not None:
            mean = end.difference / scale
            reach = found.t_limit * abs(mean / end.t) if end.t else 0.0
            rows.append((f"{name}, {end.end}", mean, mean - reach, mean + reach, end.moves))
    if not rows:
        return None
    unit = "in units of the noise" if found.noise else "in the score's unit"
    _forest(canvas, f"effect {unit}, {better_when(run.plan.direction)}", rows)
    return "Which knobs move the score", (
        f"The effects of the table, at most {MOST_ROWS}, with the intervals that decide."
    )


# Scores


def _scores(run: Run, canvas: Any) -> Texts | None:
    own, generations = _searched(run), run.generations
    if not own:
        return None
    fresh = {
        "winner" if kind == "winner" else configuration.name: scores
        for kind, batch in run.state.comparisons.items()
        for place, configuration in enumerate(batch.configurations)
        if kind in {"reference", "finalists", "winner"}
        and (scores := list(batch.scores_by_seed(place).values()))
    }
    best = [one.best_so_far for one in generations]
    chance = [one.best_by_chance for one in generations]
    band, means = run.noise_band or (), [fmean(scores) for scores in fresh.values()]
    limits = _limits([one.score for one in own], [*best, *band, *chance[-1:], *means])

    canvas.set_figheight(3.5)
    widths = (6, 1) if fresh else (1,)
    side_by_side = {"sharey": True, "squeeze": False, "width_ratios": widths}
    axes, *right = canvas.subplots(1, len(widths), **side_by_side)[0]
    for each in (axes, *right) if band else ():
        each.axhspan(*band, color=INK, alpha=0.13, lw=0, label="± 2 sd of the noise")
        each.axhline(fmean(band), color=INK, lw=1, label=f"baseline {fmean(band):.4g}")
    x = [one.generation for one in own]
    _dots(axes, x, [one.score for one in own])
    failed = [at for at, one in zip(x, own, strict=True) if one.score is None]
    if failed:
        worst = limits[run.plan.direction == "minimize"]
        axes.plot(failed, [worst] * len(failed), "x", c=RED, label="failed", clip_on=False)
    numbers = [one.number for one in generations]
    _series(axes, numbers, [one.mean for one in generations], "mean")
    look = {"where": "mid", "lw": 2, "ms": 14, "marker": "_" * (len(numbers) == 1)}
    axes.step(numbers, best, color=GREEN, label="best so far", **look)
    if run.baseline is not None:
        axes.step(numbers, chance, "--", color=PURPLE, label="best by chance", **look)
    axes.set(ylim=limits, xlabel="generation")
    axes.set_ylabel(f"score ({better_when(run.plan.direction)})")
    for each in right:
        _fresh(each, fresh)
    return "Score over generations", (
        "A search that finds something leaves the band of the noise and passes the best by chance, "
        "which the same number of baselines would reach. Only means on fresh seeds show how "
        "good a configuration is (right, 95 % interval). Far outliers lie beyond the edge."
    )


def _fresh(axes: Any, fresh: Mapping[str, list[float]]) -> None:
    """Draw each configuration's mean on fresh seeds, with its interval."""
    for place, scores in enumerate(fresh.values()):
        axes.plot([place] * 2, interval(scores, 0.05) or (nan, nan), color=ORANGE, lw=1.6)
        axes.plot(place, fmean(scores), "D", color=ORANGE, mec=INK, ms=5, clip_on=False)
    names = [_line(name)[:16] for name in fresh]
    axes.set(xticks=range(len(fresh)), xticklabels=names, title="fresh seeds", xmargin=0.15)
    axes.tick_params(axis="x", rotation=90, labelsize=FONT - 2)
    axes.tick_params(axis="y", length=0, labelleft=False)


# Knobs


def _charts(run: Run, canvas: Any, side: str) -> Iterator[tuple[Any, int]]:
    """Yield a chart and its knob's place, for the knobs that the search moved most.

    Its axis `side`, `x` or `y`, is the knob's range. The other one is the same in every chart, and
    has its numbers at the edge of the drawing only.
    """
    baseline = run.plan.space.baseline
    told = [one.told.mean for one in run.state.completed if one.told is not None]
    moved = [abs(a - b) for a, b in zip(told[-1] if told else baseline, baseline, strict=True)]
    shown = sorted(range(len(moved)), key=lambda place: -moved[place])[:MOST_KNOBS]
    rows, ticks = ceil(len(shown) / 3), [0.5, 1.0, 0.0]
    canvas.set_figheight(0.5 + 1.65 * rows)
    for at, place in enumerate(shown, 1):
        knob, scale = run.knobs[place], run.plan.space.knobs[place]
        axes = canvas.add_subplot(rows, 3, at, title=_line(knob.name))
        mark = axes.axvline if side == "x" else axes.axhline
        mark(knob.baseline_unit, color=INK, lw=1, ls="--", label="baseline")
        if knob.recommended_unit is not None:
            mark(knob.recommended_unit, color=ORANGE, ls="-.", label="recommended")
        names = [f"{scale.decode(unit):.3g}" for unit in ticks]
        look = {"ticks": ticks, "ticklabels": names, "lim": (-0.04, 1.04)}
        axes.set(**{f"{side}{name}": value for name, value in look.items()})
        if side == "x":
            axes.tick_params(labelleft=at % 3 == 1)
        else:
            axes.tick_params(labelbottom=at > len(shown) - 3)
        yield axes, place


def _paths(run: Run, canvas: Any) -> Texts | None:
    own = _searched(run)
    if not own:
        return None
    at = [one.generation for one in own]
    points = [run.state.batch(one).configurations[one.candidate].point for one in own]
    told = [one.told for one in run.state.completed if one.told is not None]
    x = [one.generation for one in told]
    for axes, place in _charts(run, canvas, "y"):
        _dots(axes, at, [point[place] for point in points])
        _series(axes, x, [one.mean[place] for one in told], "mean point")
    return "Path of each knob", (
        "Over the generations; the line is the mean of the search distribution. Where evaluations "
        "concentrate away from the baseline, the search prefers that value; where they stay "
        f"scattered, it prefers none. At most {MOST_KNOBS} knobs are drawn, those that moved most."
    )


def _marginals(run: Run, canvas: Any) -> Texts | None:
    from numpy import array_split

    samples = [
        (point, score - fmean(generation.healthy))
        for generation in (run.state.completed if run.is_search else ())
        for point, score in zip(generation.points, generation.scores(), strict=True)
        if score is not None
    ]
    if not samples:
        return None
    bins, every = min(8, 1 + len(samples) // 5), list[float]()
    for axes, place in _charts(run, canvas, "x"):
        own = sorted((point[place], more) for point, more in samples)
        means = [chunk.mean(0) for chunk in array_split(own, bins)]
        _dots(axes, *zip(*own, strict=True))
        axes.axhline(0, color=INK, lw=0.8)
        axes.plot(*zip(*means, strict=True), "D-", ms=4, color=BLUE, label="mean")
        every += [mean for _, mean in means]
    for axes in canvas.axes:
        axes.set_ylim(_limits((more for _, more in samples), every))
    return "Scores over each knob", (
        f"Up: a score less its generation's mean, {better_when(run.plan.direction)}; each diamond "
        "is the mean of equally many candidates. This is not an experiment: knobs move together. "
        "Far outliers lie beyond the edge."
    )


# The search distribution


def _step_size(run: Run, canvas: Any) -> Texts | None:
    told = [one.told for one in run.state.completed if one.told is not None]
    if not told:
        return None
    canvas.set_figheight(2.3)
    courses = {"step size": "sigma", "axis ratio": "axis_ratio"}
    for axes, (title, name) in zip(canvas.subplots(1, 2), courses.items(), strict=True):
        _series(axes, [one.generation for one in told], [getattr(one, name) for one in told])
        axes.set(ylim=(0, 1.1 * axes.get_ylim()[1]), title=title, xlabel="generation")
    return "Step size and axis ratio", (
        "A falling step size means that the search closes in; a growing one, that it follows a "
        "slope or sees only noise. An axis ratio near 1 is a sphere."
    )


def _correlations(run: Run, canvas: Any) -> Texts | None:
    names = [_line(knob.name) for knob in run.knobs]
    if run.plan.search is None or not run.state.completed or len(names) < 2:
        return None
    from numpy import ndenumerate

    from orchestrator.search import Search  # imports cma

    search = Search(run.plan.search, run.plan.resolved.population)
    try:
        search.replay(run.state.completed)
    except (ReplayError, ValueError, ArithmeticError):
        return None  # `verify` says why
    covariance = search.distribution.covariance
    deviations = covariance.diagonal() ** 0.5
    found, size = covariance / deviations / deviations[:, None], min(FONT, 250 / len(names))
    canvas.set_figheight(min(1.5 + 0.4 * len(names), 5.5))
    axes = canvas.subplots()
    axes.imshow(found, cmap="RdBu", vmin=-1.4, vmax=1.4)
    for (y, x), own in ndenumerate(found) if len(names) <= MOST_KNOBS else ():
        axes.text(x, y, f"{own:+.2f}", ha="center", va="center", fontsize=size - 1.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.tick_params(length=0, labelsize=size)
    axes.spines[:].set_visible(False)
    return "Correlations between knobs", (
        "Of the last search distribution. Blue: two knobs rise together; red: one falls as the "
        "other rises. A short search on noise shows some as well."
    )


# Time


def _device_time(run: Run, canvas: Any) -> Texts | None:
    taken = {kind: 3600 * hours for kind, hours in run.usage.items()}
    if not (total := sum(taken.values())):
        return None
    calibration, batches = run.plan.calibration, run.state.batches()
    planned = calibration.median_seconds * sum(one.cost for one in batches) if calibration else 0.0
    (unit, length), left = _time_unit(max(total, planned)), 0.0
    canvas.set_figheight(1.7)
    axes = canvas.subplots()
    for kind, seconds in taken.items():
        axes.barh("taken", seconds / length, left=left, label=kind, **_DONE[kind])
        left += seconds / length
    if planned:
        axes.barh("planned", planned / length, fill=False, ec=PURPLE, lw=1.5, label="planned")
    axes.set(xlabel=f"device time ({unit})", ylim=(-0.6, 0.6 + bool(planned)))
    return "Device time", (
        "Wasted: by attempts without a score. Idle: slots that waited, at start-up or for a "
        "generation's last evaluation. Planned: what the calibration predicts for the evaluations "
        "that were begun."
    )


def _timeline(run: Run, canvas: Any) -> Texts | None:
    tried = (own for batch in run.state.batches() for own in batch.attempts.values())
    if not (attempts := list(chain.from_iterable(tried))):
        return None
    edges = [0.0, *accumulate(ms / 1000 for ms in run.state.accounts.sessions_ms)]
    slots = 1 + max(one.reserved.slot or 0 for one in attempts)
    (unit, length), end = _time_unit(edges[-1]), max(edges[-1], 0.001)
    bars, gap = defaultdict[tuple[str, int], list[tuple[float, float]]](list), 0.0008 * end
    for one in attempts:
        opened, closed = edges[one.session : one.session + 2]  # it ends with its session
        began, over, kind = opened + one.reserved_ms / 1000, closed, "running"
        if one.settled is not None:
            over = min(closed, began + one.settled.seconds)
            kind = "wasted" if one.settled.score is None else "useful"
        width = max(gap, over - began - gap)  # so that neighbours are told apart
        bars[kind, one.reserved.slot or 0].append((began / length, width / length))
    canvas.set_figheight(0.95 + min(6.0, max(0.8, 0.2 * slots)))
    axes = canvas.subplots()
    for (kind, slot), spans in bars.items():
        axes.broken_barh(spans, (slot - 0.38, 0.76), label=kind, **_DONE[kind])
    axes.set(xlim=(0, end / length), ylim=(slots - 0.4, -0.6), ylabel="slot")
    axes.set(yticks=range(0, slots, ceil(slots / 16)), xlabel=f"time in sessions ({unit})")
    return "Evaluations by slot", "Each bar is an attempt; gaps are idle time."


# Training


def _losses(run: Run, canvas: Any) -> Texts | None:
    own = dict(_curves(run))
    if not own:
        return None
    axes = canvas.subplots()
    axes.set_prop_cycle(color=(INK, ORANGE, GREEN, BLUE), linestyle=("--", "-", "-.", ":"))
    for name, (steps, losses) in own.items():
        axes.plot(steps, losses, label=_line(name))
    every = [loss for _, losses in own.values() for loss in losses]
    axes.set(xlabel="step", ylabel="loss", ylim=_limits(every))
    return "Loss curves", (
        "A lead that shrinks towards the end would be lost with more training: check whether "
        "the curves still move apart at their end."
    )


def _curves(run: Run) -> Iterator[tuple[str, Curve]]:
    """Yield losses of the baseline, the winner and the best of the search; or of each condition."""
    if run.directory is None:
        return
    names = {"reference": "baseline", "winner": "winner", None: "best of the search"}
    places = dict[str, str]()
    healthy = (one for one in run.state.ends() if one.score is not None)
    for one in sorted(healthy, key=lambda one: run.plan.sign * (one.score or 0.0)):
        name = names.get(one.comparison)
        if not run.is_search:
            name = run.state.batch(one).configurations[one.candidate].name
        if name is not None:
            places.setdefault(name, f"eval/{one.place}")
    for name, place in list(places.items())[:MOST_CURVES]:
        if found := curve(run.directory, run.state, place):
            yield name, found


PLOTS: dict[str, Callable[[Run, Any], Texts | None]] = {
    "gains": _gains,
    "effects": _effects,
    "scores": _scores,
    "paths": _paths,
    "marginals": _marginals,
    "step_size": _step_size,
    "correlations": _correlations,
    "device_time": _device_time,
    "timeline": _timeline,
    "losses": _losses,
}
