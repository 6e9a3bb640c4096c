"""One picture of it all: what each contender leaves, and regret against spend."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scripts.bench.budgets import BUDGETS
from scripts.bench.figures import groups_of, rows
from scripts.bench.results import Result

LEAST = 1e-4
"""Of the regrets drawn: below it they are put there."""

TICKS = (0.125, 0.25, 0.5, 1, 2, 4)
OURS = "ours"


def plot(path: Path, results: Sequence[Result], reference: str) -> None:
    """Final regrets above, a panel a tier; below, one tier's course at each noise."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    tiers = [tier for tier in BUDGETS if tier in {result.tier for result in results}]
    shown = "target" if "target" in tiers else tiers[0]
    course = [result for result in results if result.tier == shown]
    groups = groups_of(course)
    figure = plt.figure(figsize=(4.0 * max(len(tiers), len(groups)), 11), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.2, 1))
    for axis, tier in zip(above.subplots(1, len(tiers), squeeze=False)[0], tiers, strict=True):
        plot_finals(axis, tier, [r for r in results if r.tier == tier], reference)
    colours = coloured(dict.fromkeys(result.contender for result in course), reference)
    panels = below.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for axis, group in zip(panels, groups, strict=True):
        plot_course(axis, group, [r for r in course if r.group == group], colours)
    panels[0].set_ylabel(f"median regret, tier {shown}")
    below.legend(*panels[0].get_legend_handles_labels(), loc="outside right", fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def coloured(contenders: Iterable[str], reference: str) -> dict[str, Any]:
    """A colour for each, always the same ones for ours and for the reference."""
    import matplotlib as mpl

    others = iter([c for c in mpl.colormaps["tab20"](range(20)) if c[0] < 0.8 or c[1] > 0.4])
    own = {OURS: "tab:red", reference: "black"}
    return {name: own.get(name) or next(others, "grey") for name in contenders}


def plot_finals(axis: Any, tier: str, results: Sequence[Result], reference: str) -> None:
    """Median and quartiles over every problem of the tier, the lowest median on top."""
    found = rows(results, {})[::-1]
    for place, row in enumerate(found):
        low, middle, high = (max(LEAST, value) for value in row.over_all)
        colour = {OURS: "tab:red", reference: "black"}.get(row.contender, "tab:blue")
        bar = {"xerr": [[middle - low], [high - middle]], "capsize": 2}
        axis.errorbar(middle, place, fmt="o", color=colour, **bar)
    axis.axvline(1, color="grey", linewidth=0.8)
    axis.set_yticks(range(len(found)), [row.contender for row in found], fontsize=8)
    _logarithmic(axis, "x")
    axis.set_title(f"{tier}: regret at the end, all noise", fontsize=9)


def plot_course(axis: Any, group: str, results: Sequence[Result], colours: dict[str, Any]) -> None:
    """Median regret of what each would have recommended at each spend."""
    for contender, colour in colours.items():
        own = [result.outcome.regrets for result in results if result.contender == contender]
        if not own:
            continue
        spends = sorted(set.intersection(*(set(regrets) for regrets in own)))
        middle = [max(LEAST, median(regrets[s] for regrets in own)) for s in spends]
        width = 2.5 if contender == OURS else 1
        axis.plot(spends, middle, label=contender, color=colour, linewidth=width)
    axis.axvline(1, color="grey", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS], fontsize=8)
    axis.set_xlabel("spend, in budgets of the tier")
    _logarithmic(axis, "y")
    axis.set_title(f"noise {group}", fontsize=9)


def _logarithmic(axis: Any, which: str) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set(**{f"{which}scale": "log"})
    own = getattr(axis, f"{which}axis")
    own.set_major_locator(LogLocator(subs=(1, 2, 5)))
    own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    own.set_minor_formatter(NullFormatter())
    axis.tick_params(axis=which, labelsize=8)
