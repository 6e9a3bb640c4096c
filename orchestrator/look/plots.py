"""Ten plots of a run, for a page and for a paper. Scores are better when lower.

A plot is a function of a `Run`, and None where the run has nothing to show in it. It is painted,
which takes time, when somebody wants to see it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil, sqrt
from statistics import fmean, stdev
from textwrap import wrap
from typing import Any, NamedTuple

from budgets.effects import CampaignReport
from budgets.events import Status
from budgets.failures import is_lost
from budgets.formatting import number, percent, shortened
from budgets.stats import interval
from budgets.verdict import BASELINE, mean_score
from orchestrator.look import draw
from orchestrator.look.blocks import Figure
from orchestrator.look.campaign import name_of
from orchestrator.look.draw import Drawing
from orchestrator.look.files import Curve, curve
from orchestrator.look.rows import Attempt, Knob
from orchestrator.look.run import Run

MOST_KNOBS, MOST_ROWS = 12, 40  # charts of knobs, lines of a forest: others are not shown
LABEL_WIDTH = 34  # characters of a row of a forest: a longer name has two lines
MOST_BINS, LEAST_IN_A_BIN = 8, 4  # of fewer candidates a standard error says little
MOST_CURVES, MOST_TRIED = 6, 3  # loss curves; evaluations of one that may have left it


def drawings(run: Run) -> dict[str, Drawing]:
    """Return every plot with something to show, by name, in the order of `PLOTS`."""
    found = ((name, plot(run)) for name, plot in PLOTS.items())
    return {name: drawing for name, drawing in found if drawing is not None}


def figures(run: Run) -> list[Figure]:
    """Return them as parts of a page."""
    return [draw.figure(name, one) for name, one in drawings(run).items()]


def _searched(run: Run) -> list[Attempt]:
    """Return the evaluations of the search."""
    return [one for one in run.attempts if run.is_search and one.is_final and not one.comparison]


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
    band = draw.known(run.noise_band or ())
    best = [one.best_so_far for one in generations]
    chance = [one.best_by_chance for one in generations]
    must = [*band, *best, *chance, *(fmean(scores) for _, _, scores in fresh)]
    low, high = draw.limits([one.score for one in own], must)

    def paint(canvas: Any) -> None:
        axes, right = canvas.subplots(1, 2, sharey=True, width_ratios=(6, 1))
        for each in (axes, right) if band else ():
            each.axhspan(*band, color=draw.INK, alpha=0.13, lw=0, label="± 2 sd of the noise")
            each.axhline(fmean(band), color=draw.INK, lw=1, label="baseline")
        x = [one.generation + 0.06 * (5 * one.candidate % 11 - 5) for one in own]  # side by side
        y = [None if one.score is None else min(one.score, high) for one in own]
        draw.dots(axes, x, y, 1500)
        if None in y:
            failed = [high if score is None else None for score in y]
            axes.plot(x, failed, "x", c=draw.RED, label="failed", clip_on=False)
        numbers = [one.number for one in generations]
        draw.series(axes, numbers, [one.mean for one in generations], "mean")
        axes.step(numbers, best, where="mid", color=draw.GREEN, lw=2, label="best so far")
        if draw.known(chance):
            look = {"c": draw.PURPLE, "lw": 2, "label": "best by chance"}
            axes.step(numbers, chance, "--", where="mid", **look)
        axes.set(ylim=(low, high), xlabel="generation", ylabel="score (lower is better)")
        if not draw.known(y):
            axes.set_yticks([])  # no score yet
        for place, (_, is_winner, scores) in enumerate(fresh):
            mark, colour = ("D", draw.ORANGE) if is_winner else ("o", draw.SKY)
            reach = interval(scores, 0.05) or (fmean(scores), fmean(scores))
            right.plot([place, place], reach, color=colour, lw=1.6)
            right.plot(place, fmean(scores), mark, color=colour, mec=draw.INK, ms=5)
        names = [draw.line(name)[:16] for name, _, _ in fresh]
        right.set(xticks=range(len(fresh)), xticklabels=names, title="fresh seeds", xmargin=0.15)
        right.tick_params(axis="x", rotation=90, labelsize=draw.FONT - 2)
        right.tick_params(axis="y", length=0, labelleft=False)

    return Drawing(
        "Score over generations",
        "A search that finds something leaves the noise and goes below the best by chance, which "
        "so many candidates equal to the baseline would show. How good a configuration is, only "
        "its mean on fresh seeds says (right, 95 % interval; the winner is a diamond).",
        3.5,
        paint,
    )


class _Row(NamedTuple):  # of a forest
    name: str
    mean: float | None
    low: float | None
    high: float | None
    is_sure: bool  # more than chance
    is_decisive: bool = False


def _forest(
    title: str, caption: str, label: str, rows: Sequence[_Row], lines: Mapping[float, str]
) -> Drawing:
    """Return the rows on an axis of that label, with lines to compare with."""
    shown = rows[:MOST_ROWS]
    if len(rows) > len(shown):
        caption += f" Not shown: {len(rows) - len(shown)} more."

    def paint(canvas: Any) -> None:
        axes = canvas.subplots()
        names = shortened([draw.line(row.name) for row in shown], 64)
        axes.set_yticks(range(len(shown)), ["\n".join(wrap(name, LABEL_WIDTH)) for name in names])
        axes.set(ylim=(len(shown) - 0.4, -0.6), xlabel=label)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        beside = {"xycoords": axes.get_yaxis_transform(), "va": "center_baseline"}
        for at, name in lines.items():
            axes.axvline(at, color=draw.INK, lw=1.2, ls="--" if at else "-", label=name)
        for at, row in enumerate(shown):
            colour, mark = (draw.ORANGE, "D") if row.is_decisive else (draw.BLUE, "o")
            name = "decisive, " * row.is_decisive
            name += "more than chance" if row.is_sure else "may be chance"
            look = {"mfc": colour if row.is_sure else "none", "mec": colour, "label": name}
            axes.plot([row.low, row.high], [at, at], color=colour, lw=1.8)
            axes.plot([row.mean], [at], mark, ms=6, **look)
            axes.annotate(number(row.mean, 3), (1.03, at), **beside)

    is_wrapped = any(len(row.name) > LABEL_WIDTH for row in shown)
    height = 0.9 + (0.38 if is_wrapped else 0.3) * max(2, len(shown))
    return Drawing(title, caption, height, paint)


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
        f"Either end of an interval is missed with a probability of {percent(level)}; n: shared "
        "seeds. The decisive gain is on seeds that no selection was made on.",
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
        "Each knob is moved from the baseline to an end of its range, all others held, on "
        "the same seeds. Filled: more than chance, all ends considered together.",
        f"change of the score ({unit}), left is better",
        rows,
        {0.0: "baseline"},
    )


def campaign(own: CampaignReport) -> Drawing:
    """Draw effects of factors; or conditions against controls; or conditions alone."""
    named = [(name_of(one), one.difference) for one in own.effects]
    named = named or [(f"{row.name} - {one.control}", one.difference)
                      for row in own.rows for one in row.comparisons]  # fmt: skip
    measure = draw.line(own.measure)
    if not named:
        rows = [_Row(one.name, one.mean, one.lower, one.upper, True) for one in own.rows]
        return _forest("Conditions", "Means over the seeds.", measure, rows, {})
    return _forest(
        "What sets the conditions apart",
        "Differences paired by seed. Filled: more than chance, all considered together.",
        f"difference ({measure}), left is better",
        [_Row(name, one.mean, one.lower, one.upper, one.is_found) for name, one in named],
        {0.0: "no difference"},
    )


def _of_knobs(
    run: Run, sizes: Sequence[float], paint_one: Callable[[Any, Knob, int], None], *words: str
) -> Drawing:
    """Return charts of the knobs with the largest sizes."""
    shown = sorted(range(len(sizes)), key=lambda place: -sizes[place])[:MOST_KNOBS]
    rows, (title, caption) = ceil(len(shown) / 3), words
    if len(sizes) > len(shown):
        caption += f" Not shown: {len(sizes) - len(shown)} knobs that matter or move less."

    def paint(canvas: Any) -> None:
        for at, place in enumerate(shown, 1):
            axes = canvas.add_subplot(rows, 3, at, title=run.knobs[place].name)
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
    history, told = run.landscapes[0], [one.number for one in run.state.completed]
    last = history[-1].mean if history else [one.baseline_unit for one in run.knobs]

    def paint(axes: Any, knob: Knob, place: int) -> None:
        draw.dots(axes, [one.generation for one in own], [one.point[place] for one in own])
        x, means = told[: len(history)], [one.mean[place] for one in history]
        ends = ([one.mean[place] + side * one.deviations[place] for one in history]
                for side in (-1, 1))  # fmt: skip
        axes.fill_between(x, *ends, color=draw.BLUE, alpha=0.22, lw=0, label="± 1 sd")
        draw.series(axes, x, means, "mean point")
        _mark_places(axes.axhline, knob)
        axes.set_yticks(*draw.knob_ticks(run.space.knobs[place]))
        axes.set_ylim(-0.04, 1.04)

    return _of_knobs(
        run,
        [abs(unit - one.baseline_unit) for unit, one in zip(last, run.knobs, strict=True)],
        paint,
        "Each knob's path",
        "The line is the mean of the search's distribution, the band one standard deviation. "
        "One that narrows away from the baseline has found something; one that stays wide has not.",
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
    count = max(1, min(MOST_BINS, len(samples) // LEAST_IN_A_BIN))
    own = [sorted((point[place], excess) for point, excess in samples)
           for place in range(len(run.knobs))]  # fmt: skip
    binned = [[_bin(one[at * len(one) // count : (at + 1) * len(one) // count])
               for at in range(count)] for one in own]  # fmt: skip
    means = [mean for bins in binned for _, mean, _ in bins]
    high = max(map(abs, draw.limits((excess for _, excess in samples), means)))

    def paint(axes: Any, knob: Knob, place: int) -> None:
        units, excess = zip(*own[place], strict=True)
        draw.dots(axes, units, [min(max(value, -high), high) for value in excess])
        axes.axhline(0, color=draw.INK, lw=0.8)
        _mark_places(axes.axvline, knob)
        looks = {"fmt": "D", "ms": 4, "lw": 1.4, "color": draw.BLUE, "label": "mean ± error"}
        axes.errorbar(*zip(*binned[place], strict=True), **looks)
        axes.set(xlim=(-0.04, 1.04), ylim=(-high, high))
        axes.set_xticks(*draw.knob_ticks(run.space.knobs[place]))

    ranges = [max(mean for _, mean, _ in bins) - min(mean for _, mean, _ in bins)
              for bins in binned]  # fmt: skip
    return _of_knobs(
        run,
        ranges,
        paint,
        "Each knob's marginal scores",
        "Scores less their generation's mean, lower is better; a diamond is the mean of as many "
        "candidates as the others. No experiment: knobs move together (`check knobs` is one).",
    )


def _bin(own: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the mean place, the mean score and its standard error."""
    units, excess = zip(*own, strict=True)
    error = stdev(excess) / sqrt(len(excess)) if len(excess) > 1 else 0.0
    return fmean(units), fmean(excess), error


def _step_size(run: Run) -> Drawing | None:
    history, told = run.landscapes[0], [one.number for one in run.state.completed]
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
        "How wide the search looks",
        "A step size that falls means that the search closes in; one that grows, that it follows "
        "a slope or sees only noise. An axis ratio near 1 is a sphere.",
        2.3,
        paint,
    )


def _correlations(run: Run) -> Drawing | None:
    history, names = run.landscapes[0], [knob.name for knob in run.space.knobs]
    if not history or len(names) < 2:
        return None
    limit, count = run.landscape_by_chance[0], len(names)
    cells = [(history[-1].correlations[row][column], row, column)
             for row in range(count) for column in range(row)]  # fmt: skip
    side = min(0.42 * (count - 1), 4.4)

    def paint(canvas: Any) -> None:
        axes, size = canvas.subplots(), min(draw.FONT, 65 * side / count)
        for r, y, x in cells:
            look = {"color": draw.BLUE if r > 0 else draw.RED, "alpha": 0.08 + 0.8 * min(abs(r), 1)}
            draw.boxes(axes, [(x - 0.5, x + 0.5, y - 0.5, y + 0.5)], lw=0, **look)
            if count <= 12 or abs(r) > limit:
                look = {"weight": "bold" if abs(r) > limit else "normal", "fontsize": size - 1.5}
                axes.text(x, y, f"{r:+.2f}", ha="center", va="center", **look)
        axes.set(xlim=(-0.5, count - 1.5), ylim=(count - 0.5, 0.5), aspect="equal", anchor="W")
        axes.set_yticks(range(1, count), names[1:])
        axes.set_xticks(range(count - 1), names[:-1], rotation=90)
        axes.tick_params(length=0, labelsize=size)
        axes.spines[:].set_visible(False)

    return Drawing(
        "Which knobs go together",
        "Correlations of the search's last distribution. Blue: two knobs rise together; red: one "
        "falls as the other rises. Bold: beyond what any of five searches reached on pure noise.",
        0.4 + side + 0.068 * max(map(len, names)),
        paint,
    )


def _unit(seconds: float) -> tuple[str, float]:
    """Return the unit in which so many seconds are read, and its length."""
    return ("s", 1.0) if seconds < 300 else ("min", 60.0) if seconds < 3 * 3600 else ("h", 3600.0)


def _device_time(run: Run) -> Drawing | None:
    looks: dict[str, dict[str, Any]] = {
        "useful": {"color": draw.BLUE},
        "wasted": {"fc": draw.RED, "hatch": "////", "ec": draw.INK, "lw": 0.3},
        "idle": {"color": draw.GREY, "alpha": 0.45},
    }
    most = max((one.useful + one.idle + one.planned for one in run.usage), default=0.0)
    if not most:
        return None
    unit, size = _unit(3600 * most)
    amounts = {kind: [3600 / size * getattr(one, kind) for one in run.usage]
               for kind in (*looks, "planned")}  # fmt: skip
    names = [one.part.removeprefix("generation " * run.is_search) for one in run.usage]
    step, gap = ceil(len(names) / 20), max(1.0, len(names) / 20)  # labels need room
    x = list(accumulate(1.0 if name.isdecimal() and int(name) else gap for name in names))
    named = [at for at, name in enumerate(names) if not name.isdecimal() or int(name) % step == 0]

    def paint(canvas: Any) -> None:
        axes, tops = canvas.subplots(), [0.0] * len(names)
        for kind, look in looks.items():
            axes.bar(x, amounts[kind], bottom=tops, label=kind, **look)
            tops = [low + own for low, own in zip(tops, amounts[kind], strict=True)]
        axes.bar(x, amounts["planned"], 0.95, fill=False, ec=draw.PURPLE, label="planned")
        axes.set_ylabel(f"device time ({unit})")
        turned = {"rotation": 90 * (len(names) > 6)}
        axes.set_xticks([x[at] for at in named], [names[at] for at in named], **turned)

    return Drawing(
        "Device time",
        "By part of the run; figures are generations. Useful and wasted time is charged; idle is "
        "what slots were there for beyond that: start-up, or a generation's last evaluation.",
        2.8,
        paint,
    )


def _kind(one: Attempt) -> str:
    if one.status is None:
        return "in flight"
    if one.status == Status.OK:
        return "healthy, comparison" if one.comparison else "healthy"
    is_gone = is_lost(one.status, one.cause) or one.status == Status.CANCELLED
    return "lost" if is_gone else "failed"


def _timeline(run: Run) -> Drawing | None:
    own = [one for one in run.attempts if one.slot is not None]  # older ledgers do not say it
    if not own:
        return None
    end = max(run.edges_ms[-1] / 1000, *(max(one.began, one.ended or 0) for one in own), 0.001)
    (unit, size), slots = _unit(end), 1 + max(one.slot or 0 for one in own)
    looks: dict[str, tuple[float, dict[str, Any]]] = {
        "healthy": (0.38, {"color": draw.BLUE, "lw": 0}),
        "healthy, comparison": (0.2, {"color": draw.GREEN, "lw": 0}),
        "failed": (0.38, {"fc": draw.RED, "hatch": "////", "ec": draw.INK, "lw": 0.3}),
        "lost": (0.38, {"fc": draw.GREY, "hatch": "....", "ec": draw.INK, "lw": 0.3}),
        "in flight": (0.38, {"fill": False, "ec": draw.INK}),
    }

    def paint(canvas: Any) -> None:
        axes, gap = canvas.subplots(), 0.0008 * end  # so that neighbours are told apart
        for kind, (half, look) in looks.items():
            mine = [(one.began, max(one.began + gap, (one.ended or end) - gap), one.slot or 0)
                    for one in own if _kind(one) == kind]  # fmt: skip
            cells = [(x / size, at / size, slot - half, slot + half) for x, at, slot in mine]
            draw.boxes(axes, cells, label=kind, **look)
        for edge in run.edges_ms[1:-1]:
            axes.axvline(edge / 1000 / size, color=draw.INK, ls=":", lw=1, label="resumed")
        axes.set(xlim=(0, end / size), ylim=(slots - 0.4, -0.6), ylabel="slot")
        axes.set_yticks(range(0, slots, ceil(slots / 16)))
        axes.set_xlabel(f"time that the run was open ({unit})")

    return Drawing(
        "Evaluations by slot",
        "Gaps are time that was there and not used.",
        0.95 + min(6.0, max(0.8, 0.2 * slots)),
        paint,
    )


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
        "What a configuration gains early and loses again later is no gain: look whether the "
        "curves still part where they end.",
        3.0,
        paint,
    )


def _curves(run: Run) -> Iterator[tuple[str, Curve]]:
    """Losses of the baseline, the winner and the best of the search; of each condition."""
    healthy = [one for one in run.attempts if one.score is not None and run.directory]
    named = {"reference": "baseline", "winner": "winner", None: "best of the search"}
    wanted = dict[str, list[Attempt]]()
    for one in sorted(healthy, key=lambda one: one.score or 0.0):
        name = named.get(one.comparison) if run.is_search else one.configuration or "baseline"
        if name is not None and (name != "winner" or one.candidate == 0):
            wanted.setdefault(name, []).append(one)
    for name, own in list(wanted.items())[:MOST_CURVES]:
        assert run.directory is not None, "there is none of these without"
        found = (curve(run.directory, run.state, one.place) for one in own[:MOST_TRIED])
        if first := next(filter(None, found), None):
            yield name, first


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
}  # by name, in reading order
