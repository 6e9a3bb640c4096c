"""One picture of it all: what each contender leaves, and regret against spend."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from orchestrator.benchmark.figures import groups_of, rows
from orchestrator.benchmark.results import Result

LEAST = 1e-4
"""Of the regrets drawn: below it they are put there."""


def plot(path: Path, results: Sequence[Result], reference: str) -> None:
    """Final regrets above, a panel a tier; below, the first tier's course at each noise level."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    tiers = list(dict.fromkeys(result.tier for result in results))
    shown = "target" if "target" in tiers else tiers[0]
    course = [result for result in results if result.tier == shown]
    groups = groups_of(course)
    across = max(len(tiers), len(groups))
    figure, axes = plt.subplots(
        2, across, figsize=(4.2 * across, 10), layout="constrained", squeeze=False
    )
    for axis in axes.flat:
        axis.set_visible(False)
    for axis, tier in zip(axes[0], tiers, strict=False):
        plot_finals(axis, tier, [r for r in results if r.tier == tier], reference)
    colours = dict(zip(dict.fromkeys(r.contender for r in course), _colours(), strict=False))
    for axis, group in zip(axes[1], groups, strict=False):
        plot_course(axis, shown, group, [r for r in course if r.group == group], colours)
    axes[1][0].legend(fontsize=7)
    figure.savefig(path, dpi=110)


def _colours() -> list[Any]:
    import matplotlib as mpl

    return [*mpl.colormaps["tab20"].colors]


def plot_finals(axis: Any, tier: str, results: Sequence[Result], reference: str) -> None:
    axis.set_visible(True)
    found = rows(results, reference)[::-1]
    for place, row in enumerate(found):
        low, middle, high = (max(LEAST, value) for value in row.over_all)
        colour = {"ours": "tab:red", reference: "black"}.get(row.contender, "tab:blue")
        bar = {"xerr": [[middle - low], [high - middle]], "capsize": 2}
        axis.errorbar(middle, place, fmt="o", color=colour, **bar)
    axis.axvline(1, color="grey", linewidth=0.8)
    axis.set_yticks(range(len(found)), [row.contender for row in found], fontsize=8)
    axis.set_xscale("log")
    axis.set_title(f"{tier}: regret at the end, median and quartiles", fontsize=9)


def plot_course(
    axis: Any, tier: str, group: str, results: Sequence[Result], colours: dict[str, Any]
) -> None:
    axis.set_visible(True)
    for contender, colour in colours.items():
        own = [result.outcome.regrets for result in results if result.contender == contender]
        if not own:
            continue
        spends = sorted(set.intersection(*(set(regrets) for regrets in own)))
        middle = [max(LEAST, median(regrets[s] for regrets in own)) for s in spends]
        width = 2.5 if contender == "ours" else 1
        axis.plot(spends, middle, label=contender, color=colour, linewidth=width)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("spend, in budgets of the tier")
    axis.set_title(f"{tier}: median regret, noise {group}", fontsize=9)
