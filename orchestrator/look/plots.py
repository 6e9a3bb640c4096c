"""Ten plots of a run, for a page and for a paper. The plan's direction says what is better.

A plot is a function that returns a `Drawing`, or None where the run has nothing to show in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from math import ceil, sqrt
from statistics import fmean
from typing import Any, NamedTuple

from budgets.effects import CampaignReport
from budgets.formatting import better_when, percent, shortened
from budgets.stats import interval
from budgets.verdict import BASELINE, mean_score
from orchestrator.look import draw, text
from orchestrator.look.draw import Drawing
from orchestrator.look.files import Curve, curve
from orchestrator.look.page import Figure
from orchestrator.look.run import Attempt, Knob, Run

MOST_KNOBS, MOST_ROWS = 12, 40  # charts of knobs; rows of a forest
LABEL_WIDTH = 44  # characters of a forest's row
MOST_BINS, BIN = 8, 4  # means over a knob's range; candidates in one, at least
MOST_CURVES = 6  # of losses


def drawings(run: Run) -> dict[str, Drawing]:
    """Return every plot with something to show, by name, in reading order."""
    found = ((name, plot(run)) for name, plot in PLOTS.items())
    return {name: drawing for name, drawing in found if drawing is not None}


def figures(run: Run) -> list[Figure]:
    """Return the plots as parts of a page."""
    return [draw.figure(name, one) for name, one in drawings(run).items()]


def _searched(run: Run) -> list[Attempt]:
    return [one for one in run.attempts if run.is_search and one.is_final and not one.comparison]


# Scores


def _scores(run: Run) -> Drawing | None:
    own, generations = _searched(run), run.generations
    if not own:
        return None
    fresh = [
        (configuration.name, kind == "winner" and place == 0, scores)  # controls follow the winner
        for kind, batch in run.state.comparisons.items()
        for place, configuration in enumerate(batch.configurations)
        if kind in {"reference", "finalists", "winner"}
        and (scores := list(batch.scores_by_seed(place).values()))
    ]
    best = [one.best_so_far for one in generations]
    chance = [one.best_by_chance for one in generations]
    band, means = draw.known(run.noise_band or ()), [fmean(scores) for _, _, scores in fresh]
    low, high = draw.limits([one.score for one in own], best, [*band, *chance, *means])

    def clipped(scores: Iterable[float | None]) -> list[float | None]:
        return [None if score is None else min(max(score, low), high) for score in scores]

    def paint(canvas: Any) -> None:
        axes, *right = canvas.subplots(
            1, 1 + bool(fresh), sharey=True, squeeze=False, width_ratios=(6, 1)[: 1 + bool(fresh)]
        )[0]
        for each in (axes, *right) if band else ():
            each.axhspan(
                *clipped(band), color=draw.INK, alpha=0.13, lw=0, label="± 2 sd of the noise"
            )
            (middle,) = clipped([fmean(band)])
            each.axhline(middle, color=draw.INK, lw=1, label=f"baseline {fmean(band):.4g}")
        x = [one.generation + 0.06 * (5 * one.candidate % 11 - 5) for one in own]  # side by side
        y = clipped(one.score for one in own)
        draw.dots(axes, x, y, 1500)
        if None in y:
            worst = high if run.plan.direction == "minimize" else low
            failed = [worst if score is None else None for score in y]
            axes.plot(x, failed, "x", c=draw.RED, label="failed", clip_on=False)
        numbers = [one.number for one in generations]
        draw.series(axes, numbers, clipped(one.mean for one in generations), "mean")
        look = {"where": "mid", "lw": 2, "ms": 14, "marker": "_" * (len(numbers) == 1)}
        axes.step(numbers, best, color=draw.GREEN, label="best so far", **look)
        axes.step(numbers, clipped(chance), "--", color=draw.PURPLE, label="best by chance", **look)
        axes.set(ylim=(low, high), xlabel="generation")
        axes.set_ylabel(f"score ({better_when(run.plan.direction)})")
        if not draw.known(y):
            axes.set_yticks([])  # no score yet
        for place, (_, is_winner, scores) in enumerate(fresh):
            mark, colour = ("D", draw.ORANGE) if is_winner else ("o", draw.SKY)
            reach = interval(scores, 0.05) or (means[place], means[place])
            right[0].plot([place, place], clipped(reach), color=colour, lw=1.6)
            seen = {"color": colour, "mec": draw.INK, "ms": 5, "clip_on": False}
            right[0].plot(place, clipped([means[place]]), mark, **seen)
        for each in right:
            names = [draw.line(name)[:16] for name, _, _ in fresh]
            each.set(xticks=range(len(fresh)), xticklabels=names, title="fresh seeds", xmargin=0.15)
            each.tick_params(axis="x", rotation=90, labelsize=draw.FONT - 2)
            each.tick_params(axis="y", length=0, labelleft=False)

    return Drawing(
        "Score over generations",
        "A search that finds something leaves the noise and gets beyond the best by chance, "
        "expected of as many candidates equal to the baseline. Only means on fresh seeds say how "
        "good a configuration is (right, 95 % interval; the winner is a diamond). What is at the "
        "upper or lower edge may lie beyond it.",
        3.5,
        paint,
    )


# Forests: gains, and the effects of a check or a campaign


class _Row(NamedTuple):
    name: str
    mean: float | None
    low: float | None
    high: float | None
    is_sure: bool  # more than chance
    is_decisive: bool = False


def _forest(
    title: str, caption: str, label: str, rows: Sequence[_Row], lines: Mapping[float, str]
) -> Drawing:
    """Return rows with intervals on an axis of that label, and vertical lines to compare with."""
    shown = rows[:MOST_ROWS]
    if len(rows) > len(shown):
        caption += f" Not shown: {len(rows) - len(shown)} more."

    def paint(canvas: Any) -> None:
        axes = canvas.subplots()
        names = shortened([draw.line(row.name) for row in shown], LABEL_WIDTH)
        axes.set_yticks(range(len(shown)), names)
        axes.set(ylim=(len(shown) - 0.4, -0.6), xlabel=label)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        for at, name in lines.items():
            axes.axvline(at, color=draw.INK, lw=1.2, ls="--" if at else "-", label=name)
        for at, row in enumerate(shown):
            colour, mark = (draw.ORANGE, "D") if row.is_decisive else (draw.BLUE, "o")
            name = "decisive, " * row.is_decisive
            name += "more than chance" if row.is_sure else "may be chance"
            look = {"mfc": colour if row.is_sure else "none", "mec": colour, "label": name}
            axes.plot([row.low, row.high], [at, at], color=colour, lw=1.8)
            axes.plot([row.mean], [at], mark, ms=6, **look)

    return Drawing(title, caption, 0.9 + 0.3 * max(2, len(shown)), paint)


def _gains(run: Run) -> Drawing | None:
    if not run.gains or run.findings is None:
        return None
    rows, asked, level = [], run.findings.asked, run.gains[0].gain.level
    for one in run.gains:
        gain, name = one.gain, one.name + f" over {one.against}" * (one.against != BASELINE)
        shares = (gain.mean, gain.lower, gain.upper)
        mean, low, high = (None if share is None else 100 * share for share in shares)
        name = f"{name}, n = {gain.pairs}".replace(" (control)", "")
        rows.append(_Row(name, mean, low, high, gain.is_shown or gain.is_loss, one.is_decisive))
    return _forest(
        "Gains on fresh seeds",
        f"Each end of an interval is missed with a probability of {percent(level)}; n: shared "
        "seeds. The decisive gain is on seeds that nothing was selected on.",
        "gain (%), right is better",
        rows,
        {0.0: BASELINE, 100 * asked: f"a Go needs {percent(asked)}"},
    )


def _effects(run: Run) -> Drawing | None:
    if run.campaign is not None:
        return campaign(run.campaign)
    found, rows = run.check, []
    scale, unit = (found.noise, "sd of the noise") if found and found.noise else (1.0, "score")
    for knob in found.knobs if found else ():
        for end in knob.ends:
            if found and end.difference is not None:
                mean = end.difference / scale
                reach = found.t_limit * (end.standard_error or 0) / scale
                name = f"{knob.knob}, {end.end}"
                rows.append(_Row(name, mean, mean - reach, mean + reach, end.moves))
    if not rows:
        return None
    return _forest(
        "Which knobs move the score",
        "Each knob is moved alone from the baseline to an end of its range, on the same seeds. "
        "Filled: more than chance, all ends considered together.",
        f"change of the score ({unit}), {_better_side(run.plan.direction)}",
        rows,
        {0.0: "baseline"},
    )


def campaign(own: CampaignReport) -> Drawing:
    """Draw the effects of factors, else conditions against controls, else conditions alone."""
    named = [(text.effect(one), one.difference) for one in own.effects]
    for row in own.rows if not named else ():
        named += [(f"{row.name} - {one.control}", one.difference) for one in row.comparisons]
    if not named:
        rows = [_Row(one.name, one.mean, one.lower, one.upper, True) for one in own.rows]
        return _forest("Conditions", "Means over the seeds.", "score", rows, {})
    return _forest(
        "Differences between the conditions",
        "Differences are paired by seed. Filled: more than chance, all considered together.",
        f"difference (score), {_better_side(own.direction)}",
        [_Row(name, one.mean, one.lower, one.upper, one.is_found) for name, one in named],
        {0.0: "no difference"},
    )


# Knobs


def _better_side(direction: str) -> str:
    return "left is better" if direction == "minimize" else "right is better"


def _of_knobs(
    run: Run, sizes: Sequence[float], paint_one: Callable[[Any, Knob, int], None], *words: str
) -> Drawing:
    """Return a chart for each knob, of those with the largest sizes."""
    shown = sorted(range(len(sizes)), key=lambda place: -sizes[place])[:MOST_KNOBS]
    rows, (title, caption) = ceil(len(shown) / 3), words
    if len(sizes) > len(shown):
        caption += f" Not shown: {len(sizes) - len(shown)} knobs that matter or move less."

    def paint(canvas: Any) -> None:
        for at, place in enumerate(shown, 1):
            axes = canvas.add_subplot(rows, 3, at, title=draw.line(run.knobs[place].name))
            paint_one(axes, run.knobs[place], place)

    return Drawing(title, caption, 0.5 + 1.65 * rows, paint)


def _mark_places(line_at: Callable[..., Any], knob: Knob) -> None:
    line_at(knob.baseline_unit, color=draw.INK, lw=1, ls="--", label="baseline")
    if knob.recommended_unit is not None:
        line_at(knob.recommended_unit, color=draw.ORANGE, ls="-.", label="recommended")


def _paths(run: Run) -> Drawing | None:
    own = _searched(run)
    if not own:
        return None
    history = run.landscapes
    x = [one.number for one in run.state.completed][: len(history)]
    last = history[-1].mean if history else [one.baseline_unit for one in run.knobs]

    def paint(axes: Any, knob: Knob, place: int) -> None:
        draw.dots(axes, [one.generation for one in own], [one.point[place] for one in own])
        means = [one.mean[place] for one in history]
        deviations = [one.deviations[place] for one in history]
        low = [mean - deviation for mean, deviation in zip(means, deviations, strict=True)]
        high = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
        if history:
            axes.fill_between(x, low, high, color=draw.BLUE, alpha=0.22, lw=0, label="± 1 sd")
        draw.series(axes, x, means, "mean point")
        _mark_places(axes.axhline, knob)
        axes.set_yticks(*draw.knob_ticks(run.plan.space.knobs[place]))
        axes.set_ylim(-0.04, 1.04)

    return _of_knobs(
        run,
        [abs(unit - one.baseline_unit) for unit, one in zip(last, run.knobs, strict=True)],
        paint,
        "Path of each knob",
        "The line is the mean of the search distribution, the band one standard deviation. A band "
        "that narrows away from the baseline has found something; one that stays wide has not.",
    )


def _marginals(run: Run) -> Drawing | None:
    samples = [
        (point, score - mean)
        for generation in (run.state.completed if run.is_search else ())
        if (mean := mean_score(generation)) is not None
        for point, score in zip(generation.points, generation.scores(), strict=True)
        if score is not None
    ]
    if not samples:
        return None
    size = ceil(len(samples) / max(1, min(MOST_BINS, len(samples) // BIN)))
    dots = [
        sorted((point[place], more) for point, more in samples) for place in range(len(run.knobs))
    ]
    means = [
        [
            tuple(map(fmean, zip(*own[at : at + size], strict=True)))
            for at in range(0, len(own), size)
        ]
        for own in dots
    ]
    heights = [[mean for _, mean in bins] for bins in means]
    high = max(map(abs, draw.limits((more for _, more in samples), chain(*heights))))

    def paint(axes: Any, knob: Knob, place: int) -> None:
        x, y = zip(*dots[place], strict=True)
        draw.dots(axes, x, [min(max(value, -high), high) for value in y])
        axes.axhline(0, color=draw.INK, lw=0.8)
        _mark_places(axes.axvline, knob)
        axes.plot(*zip(*means[place], strict=True), "D-", ms=4, color=draw.BLUE, label="mean")
        axes.set(xlim=(-0.04, 1.04), ylim=(-high, high))
        axes.set_xticks(*draw.knob_ticks(run.plan.space.knobs[place]))

    return _of_knobs(
        run,
        [max(own) - min(own) for own in heights],
        paint,
        "Scores over each knob",
        f"Scores less their generation's mean, {better_when(run.plan.direction)}; each diamond is "
        "the mean of equally many candidates. This is not an experiment: knobs move together "
        "(`check knobs` is one).",
    )


# The search distribution


def _step_size(run: Run) -> Drawing | None:
    history, told = run.landscapes, [one.number for one in run.state.completed]
    if not history:
        return None
    courses = {
        "step size": [one.sigma for one in history],
        "axis ratio": [sqrt(one.condition) for one in history],
    }

    def paint(canvas: Any) -> None:
        for axes, (title, y) in zip(canvas.subplots(1, 2), courses.items(), strict=True):
            draw.series(axes, told, y)
            axes.set(ylim=(0, 1.1 * max(y)), title=title, xlabel="generation")
            axes.grid(axis="y")

    return Drawing(
        "Step size and axis ratio",
        "A falling step size means that the search closes in; a growing one, that it follows a "
        "slope or sees only noise. An axis ratio near 1 is a sphere.",
        2.3,
        paint,
    )


def _correlations(run: Run) -> Drawing | None:
    history, names = run.landscapes, [draw.line(knob.name) for knob in run.plan.space.knobs]
    if not history or len(names) < 2:
        return None
    count, found = len(names), history[-1].correlations
    side = min(0.42 * (count - 1), 4.4)

    def paint(canvas: Any) -> None:
        axes, size = canvas.subplots(), min(draw.FONT, 65 * side / count)
        for x, y in combinations(range(count), 2):
            r = found[x][y]
            look = {"color": draw.BLUE if r > 0 else draw.RED, "alpha": 0.08 + 0.8 * min(abs(r), 1)}
            axes.bar(x, 1, 1, bottom=y - 0.5, lw=0, **look)
            if count <= MOST_KNOBS:
                axes.text(x, y, f"{r:+.2f}", ha="center", va="center", fontsize=size - 1.5)
        axes.set(xlim=(-0.5, count - 1.5), ylim=(count - 0.5, 0.5), aspect="equal", anchor="W")
        axes.set_yticks(range(1, count), names[1:])
        axes.set_xticks(range(count - 1), names[:-1], rotation=90)
        axes.tick_params(length=0, labelsize=size)
        axes.spines[:].set_visible(False)

    return Drawing(
        "Correlations between knobs",
        "Of the last search distribution. Blue: two knobs rise together; red: one falls as the "
        "other rises. A short search on noise shows some as well.",
        0.4 + side + 0.068 * max(map(len, names)),
        paint,
    )


# Time


def _device_time(run: Run) -> Drawing | None:
    usage = run.usage
    taken = sum(usage.values()) - usage["planned"]
    if not taken:
        return None
    unit, length = draw.time_unit(3600 * max(taken, usage["planned"]))
    looks: dict[str, dict[str, Any]] = {
        "useful": {"color": draw.BLUE},
        "wasted": {"fc": draw.RED, "hatch": "////", "ec": draw.INK, "lw": 0.3},
        "idle": {"color": draw.GREY, "alpha": 0.45},
    }

    def paint(canvas: Any) -> None:
        axes, left = canvas.subplots(), 0.0
        for kind, look in looks.items():
            width = 3600 * usage[kind] / length
            axes.barh("taken", width, left=left, label=kind, **look)
            left += width
        if planned := 3600 * usage["planned"] / length:
            axes.barh("planned", planned, fill=False, ec=draw.PURPLE, lw=1.5, label="planned")
        axes.set(xlabel=f"device time ({unit})", ylim=(-0.6, 0.6 + bool(planned)))

    return Drawing(
        "Device time",
        "Wasted: by attempts without a score. Idle: slots that waited, at start-up or for a "
        "generation's last evaluation. Planned: by the calibration, for what was begun.",
        1.7,
        paint,
    )


def _timeline(run: Run) -> Drawing | None:
    own = [one for one in run.attempts if one.slot is not None]  # older ledgers do not say it
    if not own:
        return None
    end = max(run.edges_ms[-1] / 1000, *(max(one.began, one.ended or 0) for one in own), 0.001)
    (unit, length), slots = draw.time_unit(end), 1 + max(one.slot or 0 for one in own)
    looks: dict[str, dict[str, Any]] = {
        "search": {"fc": draw.BLUE, "lw": 0},
        "comparison": {"fc": draw.GREEN, "lw": 0},
        "no score": {"fc": draw.RED, "hatch": "////", "ec": draw.INK, "lw": 0.3},
        "running": {"fc": "none", "ec": draw.INK},
    }

    def paint(canvas: Any) -> None:
        axes, gap = canvas.subplots(), 0.0008 * end  # so that neighbours are told apart
        bars: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for one in own:
            width = max(gap, (one.ended or end) - one.began - gap)
            bar = (one.began / length, width / length)
            kind = "comparison" if one.comparison else "search"
            kind = kind if one.score is not None else "no score" if one.status else "running"
            bars.setdefault((kind, one.slot or 0), []).append(bar)
        for (kind, slot), spans in bars.items():
            axes.broken_barh(spans, (slot - 0.38, 0.76), label=kind, **looks[kind])
        axes.set(xlim=(0, end / length), ylim=(slots - 0.4, -0.6), ylabel="slot")
        axes.set_yticks(range(0, slots, ceil(slots / 16)))
        axes.set_xlabel(f"time that the run was open ({unit})")

    return Drawing(
        "Evaluations by slot",
        "Gaps are idle time.",
        0.95 + min(6.0, max(0.8, 0.2 * slots)),
        paint,
    )


# Training


def _losses(run: Run) -> Drawing | None:
    own = dict(_curves(run))
    if not own:
        return None

    def paint(canvas: Any) -> None:
        axes = canvas.subplots()
        colours = (draw.INK, draw.ORANGE, draw.GREEN, draw.BLUE)
        axes.set_prop_cycle(color=colours, linestyle=("--", "-", "-.", ":"))
        for name, (steps, losses) in own.items():
            axes.plot(steps, losses, label=draw.line(name))
        every = [loss for _, losses in own.values() for loss in losses]
        axes.set(xlabel="step", ylabel="loss")
        axes.set_ylim(draw.limits(every, [losses[0] for _, losses in own.values()]))

    return Drawing(
        "Loss curves",
        "A lead that shrinks towards the end would be lost with more training: look whether the "
        "curves still part where they end.",
        3.0,
        paint,
    )


def _curves(run: Run) -> Iterator[tuple[str, Curve]]:
    """Yield losses of the baseline, the winner and the best of the search; or of each condition."""
    if run.directory is None:
        return
    names = {"reference": "baseline", "winner": "winner", None: "best of the search"}
    places = dict[str, list[str]]()
    healthy = (one for one in run.attempts if one.score is not None)
    for one in sorted(healthy, key=lambda one: run.plan.sign * (one.score or 0.0)):
        name = names.get(one.comparison) if run.is_search else one.configuration or "baseline"
        if name is not None and (name != "winner" or one.candidate == 0):
            places.setdefault(name, []).append(one.place)
    for name, own in list(places.items())[:MOST_CURVES]:
        if found := curve(run.directory, run.state, own[0]):
            yield name, found


PLOTS: dict[str, Callable[[Run], Drawing | None]] = {
    "gains": _gains,
    "effects": _effects,
    "scores": _scores,
    "device_time": _device_time,
    "step_size": _step_size,
    "correlations": _correlations,
    "paths": _paths,
    "marginals": _marginals,
    "timeline": _timeline,
    "losses": _losses,
}
