"""Three plots of a run with matplotlib, as SVG for a page and as PNG, PDF or SVG for a paper.

A plot is a function that paints on an empty figure and returns its title and how to read it, or
None where the run has nothing to show in it. The colours are those of Okabe and Ito, which
colour-blind readers tell apart; marks and lines differ too. In dark mode a page inverts
their lightness. Matplotlib is imported when something is drawn, and its pyplot never.
"""

import base64
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, nan
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from budgets.events import Settled
from budgets.formatting import better_when, printable
from budgets.stats import interval
from orchestrator.look.files import Curve, curve
from orchestrator.look.run import Run

INK = "#1b1f24"
GREY, BLUE, SKY, GREEN = "#808080", "#0072b2", "#56b4e9", "#009e73"
ORANGE, RED, PURPLE = "#e69f00", "#d55e00", "#cc79a7"
WIDTH, FONT = 6.4, 9.0  # of a drawing, in inches; of its text, in points
MOST_KNOBS = 12  # charts of them
MOST_CURVES = 6  # of losses

_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE = dict.fromkeys(_INKED, INK) | {
    "font.size": FONT,  # of DejaVu Sans, which comes with matplotlib
    "axes.titlesize": FONT + 1,
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a `$` in a name is a `$`
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
            canvas.legend(marks.values(), marks, loc="outside upper left", ncols=3, **looks)
        title, caption = map(_line, texts)
        found[name] = Drawing(name, title, caption, canvas)
    return found


# What plots share


def _line(text: str) -> str:
    """Return text as one line without characters that steer."""
    return " ".join(printable(text).split())


def _dots(axes: Any, x: Sequence[float], y: Sequence[float | None]) -> None:
    """Draw evaluations behind all else, as an image: there may be thousands."""
    looks = {"ms": 2.6, "mew": 0, "color": GREY, "zorder": 1.5, "label": "evaluation"}
    axes.plot(x, y, "o", rasterized=True, **looks)


def _series(axes: Any, x: Sequence[float], y: Sequence[float | None], label: str = "") -> None:
    """Draw a line over generations, with marks where there are few."""
    from matplotlib.ticker import MaxNLocator

    axes.plot(x, y, color=BLUE, lw=1.6, marker="." * (len(x) <= 30), ms=6, label=label)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def _limits(
    values: Iterable[float | None], must: Iterable[float | None] = ()
) -> tuple[float, float]:
    """Return the ends of an axis that shows all of `must`, and `values` without far outliers."""
    own, kept = (
        [one for one in each if one is not None and isfinite(one)] for each in (values, must)
    )
    if len(own) > 7:
        lower, _, upper = quantiles(own, n=4)
        own = [one for one in own if abs(one - (lower + upper) / 2) <= 3.5 * (upper - lower)]
    low, high = min(own + kept, default=0.0), max(own + kept, default=1.0)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _searched(run: Run) -> list[Settled]:
    ends = run.state.ends() if run.is_search else ()
    return [end for end in ends if end.final and end.comparison is None]


# Scores


def _scores(run: Run, canvas: Any) -> Texts | None:
    own, generations = _searched(run), run.generations
    if not own:
        return None
    fresh = [
        (configuration.name, kind == "winner" and place == 0, scores)  # controls follow it
        for kind, batch in run.state.comparisons.items()
        for place, configuration in enumerate(batch.configurations)
        if kind in {"reference", "finalists", "winner"}
        and (scores := list(batch.scores_by_seed(place).values()))
    ]
    best = [one.best_so_far for one in generations]
    chance = [one.best_by_chance for one in generations]
    band, means = run.noise_band or (), [fmean(scores) for _, _, scores in fresh]
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
        "A search that finds something leaves the noise and gets beyond the best by chance, "
        "expected of as many candidates equal to the baseline. Only means on fresh seeds say how "
        "good a configuration is (right, 95 % interval; the winner is a diamond). Far outliers "
        "lie beyond the edge."
    )


def _fresh(axes: Any, fresh: Sequence[tuple[str, bool, list[float]]]) -> None:
    """Draw each configuration's mean on fresh seeds, with its interval."""
    for place, (_, is_winner, scores) in enumerate(fresh):
        mark, colour = ("D", ORANGE) if is_winner else ("o", SKY)
        axes.plot([place] * 2, interval(scores, 0.05) or (nan, nan), color=colour, lw=1.6)
        axes.plot(place, fmean(scores), mark, color=colour, mec=INK, ms=5, clip_on=False)
    names = [_line(name)[:16] for name, _, _ in fresh]
    axes.set(xticks=range(len(fresh)), xticklabels=names, title="fresh seeds", xmargin=0.15)
    axes.tick_params(axis="x", rotation=90, labelsize=FONT - 2)
    axes.tick_params(axis="y", length=0, labelleft=False)


# Knobs


def _paths(run: Run, canvas: Any) -> Texts | None:
    own = _searched(run)
    if not own:
        return None
    at = [one.generation for one in own]
    points = [run.state.batch(one).configurations[one.candidate].point for one in own]
    told = [one.told for one in run.state.completed if one.told is not None]
    x = [one.generation for one in told]
    last = told[-1].mean if told else [one.baseline_unit for one in run.knobs]
    moved = [abs(unit - one.baseline_unit) for unit, one in zip(last, run.knobs, strict=True)]
    shown = sorted(range(len(moved)), key=lambda place: -moved[place])[:MOST_KNOBS]
    rows, left = ceil(len(shown) / 3), len(moved) - len(shown)
    more = f" Not shown: {left} knobs that moved less." if left else ""
    canvas.set_figheight(0.5 + 1.65 * rows)
    for at_chart, place in enumerate(shown, 1):
        knob, scale = run.knobs[place], run.plan.space.knobs[place]
        axes = canvas.add_subplot(rows, 3, at_chart, title=_line(knob.name))
        _dots(axes, at, [point[place] for point in points])
        _series(axes, x, [one.mean[place] for one in told], "mean point")
        axes.axhline(knob.baseline_unit, color=INK, lw=1, ls="--", label="baseline")
        if knob.recommended_unit is not None:
            axes.axhline(knob.recommended_unit, color=ORANGE, ls="-.", label="recommended")
        ticks = [0.5, 1.0, 0.0]
        names = [f"{scale.decode(unit):.3g}" for unit in ticks]
        axes.set(yticks=ticks, yticklabels=names, ylim=(-0.04, 1.04))
    return "Path of each knob", (
        "The line is the mean of the search distribution. Where evaluations close in on a value "
        "away from the baseline, something is found; where they stay scattered, it is not."
        f"{more}"
    )


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
        "A lead that shrinks towards the end would be lost with more training: look whether the "
        "curves still part where they end."
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
            name = run.state.batch(one).configurations[one.candidate].name or "baseline"
        if name is not None and (name != "winner" or one.candidate == 0):
            places.setdefault(name, f"eval/{one.place}")
    for name, place in list(places.items())[:MOST_CURVES]:
        if found := curve(run.directory, run.state, place):
            yield name, found


PLOTS: dict[str, Callable[[Run, Any], Texts | None]] = {
    "scores": _scores,
    "paths": _paths,
    "losses": _losses,
}
