"""A campaign as a picture: its conditions on all seeds, and the effects with their intervals.

Only what draws imports matplotlib, and nothing of its global state is changed.
"""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.campaign.effects import CampaignReport
from budgets.campaign.names import shortened
from budgets.storage import write_aside
from orchestrator.campaign.bars import Bar, bars_of, bars_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = "effects.png"

FORMS = ("png", "svg", "pdf")

NAME_WIDTH, LABEL_WIDTH, OF_WIDTH = 48, 60, 30
"""Characters of a condition's name, of an effect's, and of a name below an axis."""

MOST_LINES = 120
"""More would be a picture that no viewer opens."""

LINE_INCHES, CHARACTER_INCHES, PANEL_INCHES = 0.26, 0.075, 3.4

BLUE, VERMILION, GREY, BAND = "#0072B2", "#D55E00", "#6E6E6E", "#DDDDDD"
"""Told apart by every kind of eye: M. Okabe and K. Ito, "Color Universal Design"."""

UNITS = {"nanochat": "held-out bits per byte"}
"""What an objective's score is, where it has a unit."""

MISSING = "a picture needs matplotlib: pip install 'cmaes-orchestrator[plots]'"

_RAW = {"parse_math": False}  # a name may hold a dollar


def can_draw() -> bool:
    """Whether matplotlib is installed. Does not import it."""
    return find_spec("matplotlib") is not None


def unit_of(objective: str, measure: str) -> str:
    """What an axis of scores is called: of searches, what stands for each."""
    unit = UNITS.get(objective, "score")
    return unit if measure == "score" else f"{unit}: {measure}"


def draw(report: CampaignReport, path: Path, unit: str) -> None:
    """Write the picture of a campaign to `path`, in the format that its name ends with.

    Raises ValueError on another ending, ImportError without matplotlib.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise ValueError(f"--plot: expected a name that ends with .{', .'.join(FORMS)}, got {path}")
    write_aside(path, picture(report, unit, form))


def picture(report: CampaignReport, unit: str, form: str = "png") -> bytes:
    """The picture as a file of that format: the same bytes for the same campaign."""
    from matplotlib import rc_context

    out = io.BytesIO()
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with rc_context({"svg.hashsalt": "campaign", "svg.fonttype": "none"}):
        figure_of(report, unit).savefig(out, format=form, dpi=150, metadata=metadata)
    return out.getvalue()


def figure_of(report: CampaignReport, unit: str) -> "Figure":
    from matplotlib.figure import Figure

    bars, rows = bars_of(report)[:MOST_LINES], report.rows[:MOST_LINES]
    names = shortened([row.name for row in rows], NAME_WIDTH)
    names = [name + _missing(report, place) for place, name in enumerate(names)]
    labels = shortened([bar.name for bar in bars], LABEL_WIDTH)
    widest = sum(max(map(len, own), default=0) for own in (names, labels))
    lines = max(len(names), len(labels), 3)
    figure = Figure(
        figsize=(2 * PANEL_INCHES + CHARACTER_INCHES * widest, 2.0 + LINE_INCHES * lines),
        layout="constrained",
    )
    left, right = figure.subplots(1, 2)
    figure.suptitle(_title(report), fontsize=11, **_RAW)
    _draw_conditions(left, report, names, unit)
    _draw_bars(right, report, bars, labels, unit)
    handles = [*_legend(left), *(h for h in _legend(right) if h.get_label() not in _labels(left))]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _legend(axis: Any) -> list[Any]:
    handles, _ = axis.get_legend_handles_labels()
    return list(handles)


def _labels(axis: Any) -> list[str]:
    return [handle.get_label() for handle in _legend(axis)]


def _title(report: CampaignReport) -> str:
    seeds = "one seed" if len(report.seeds) == 1 else f"{len(report.seeds)} seeds"
    shown = f" ({MOST_LINES} shown)" if len(report.rows) > MOST_LINES else ""
    title = f"{report.name}: {len(report.rows)} conditions{shown}, {seeds}"
    if not report.is_over:
        return f"{title} ({report.evaluations - report.unsettled} of {report.evaluations} settled)"
    return title


def _missing(report: CampaignReport, place: int) -> str:
    """` (2 oom)`: cells of a condition that gave no score."""
    statuses = report.rows[place].statuses.items()
    others = ", ".join(f"{count} {status}" for status, count in statuses if status != "ok")
    return f" ({others})" if others else ""


def _draw_conditions(axis: Any, report: CampaignReport, names: list[str], unit: str) -> None:
    """Scores of each seed, mean and interval; the first control's behind them all."""
    sure = f"mean, {1 - report.level:.0%} interval"
    band = next((row for row in report.rows if row.is_control and row.healthy), None)
    if band is not None:
        label = shortened([band.name], OF_WIDTH)[0]
        if band.lower is not None:
            axis.axvspan(band.lower, band.upper, color=BAND, zorder=0, label=f"{label}, interval")
        own = label if band.lower is None else None
        axis.axvline(band.mean, color=GREY, linewidth=1, linestyle="--", zorder=1, label=own)
    told = False
    for place, row in enumerate(report.rows[:MOST_LINES]):
        scores = [score for score in row.scores if score is not None]
        if not scores:
            continue
        first = None if told else "score of one seed"
        axis.plot(scores, [place - 0.18] * len(scores), ".", color=BLUE, alpha=0.55, label=first)
        if row.lower is not None and row.upper is not None and row.mean is not None:
            reach = [[row.mean - row.lower], [row.upper - row.mean]]
            has = any(label == sure for label in _labels(axis))
            axis.errorbar(
                row.mean, place + 0.12, xerr=reach, fmt="D", markersize=4, capsize=2.5,
                color="black", linewidth=1, label=None if has else sure,
            )  # fmt: skip
        told = True
    _rows(axis, names)
    axis.set_xlabel(f"{unit}\nlower is better", fontsize=9, **_RAW)
    axis.set_title("Conditions: scores over seeds", fontsize=10)
    if not told:
        _nothing(axis, "no score yet")


def _draw_bars(
    axis: Any, report: CampaignReport, bars: list[Bar], labels: list[str], unit: str
) -> None:
    """A forest: each difference with its interval; filled, where it is beyond chance."""
    is_relative = all(bar.difference.percent is not None for bar in bars if bar.difference.seeds)
    is_any = any(bar.difference.seeds for bar in bars)
    if is_any:
        axis.axvline(0, color=GREY, linewidth=1, zorder=0)
    for place, bar in enumerate(bars if is_any else []):
        values = bar.values(is_relative=is_relative)
        if values is None:
            where = axis.get_yaxis_transform()
            axis.text(
                0.02, place, "not estimated", fontsize=7, va="center", color=GREY, transform=where
            )
            continue
        found = bar.difference.is_found
        mean, lower, upper = values
        reach = None if lower is None or upper is None else [[mean - lower], [upper - mean]]
        label = "beyond chance" if found else _not_shown(report)
        has = label in _labels(axis)
        axis.errorbar(
            mean, place, xerr=reach, fmt="s", markersize=5, capsize=2.5, linewidth=1.2,
            color=VERMILION if found else BLUE,
            markerfacecolor=VERMILION if found else "white", label=None if has else label,
        )  # fmt: skip
    _rows(axis, labels)
    axis.set_title(bars_title(report), fontsize=10, **_RAW)
    of = f"% of the mean of {_whose(bars)}" if bars and is_relative else unit
    axis.set_xlabel(f"difference: left is better\n{of}", fontsize=9, **_RAW)
    if not bars:
        _nothing(axis, "no factor and no control to compare by")
    elif not is_any:
        _nothing(axis, "nothing to compare yet")


def _whose(bars: list[Bar]) -> str:
    """What the percents are of."""
    names = list(dict.fromkeys(bar.reference for bar in bars))
    return shortened(names, OF_WIDTH)[0] if len(names) == 1 else "the control"


def _not_shown(report: CampaignReport) -> str:
    if len(report.seeds) == 1:
        return "one seed: no interval"
    return "may be chance" if report.is_over else "not judged yet"


def _rows(axis: Any, names: list[str]) -> None:
    """A line for each name, the first at the top."""
    from matplotlib.ticker import MaxNLocator

    axis.set_yticks(range(len(names)), names, fontsize=8, **_RAW)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axis.ticklabel_format(axis="x", useOffset=False)
    axis.tick_params(axis="x", labelsize=8)
    axis.margins(x=0.08)
    axis.grid(axis="y", color="#EEEEEE", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _nothing(axis: Any, why: str) -> None:
    axis.set_xticks([])
    axis.text(0.5, 0.5, why, ha="center", va="center", color=GREY, transform=axis.transAxes)
