"""A sweep as people and programs read it."""

from math import isinf
from typing import Any

from budgets.table import table
from budgets.words import figure
from orchestrator.running.sweep import Swept
from orchestrator.scalability import Fit

COLUMNS = (">workers", ">evaluations/hour", ">seconds each", ">efficiency", ">fitted", "regime")


def to_markdown(name: str, levels: list[Swept], fit: Fit, devices: int) -> str:
    """The table, the law, and what to do about it."""
    lines = [
        f"# Throughput of {name}",
        "",
        *table(COLUMNS, (_row(level, levels[0], fit) for level in levels)),
        "",
        *_in_words(fit),
        "",
        f"Recommended: `--workers {fit.recommended(devices)}`.",
    ]
    return "\n".join([*lines, *_warnings(levels, fit), ""])


def _row(level: Swept, first: Swept, fit: Fit) -> tuple[object, ...]:
    noise = figure(level.level.noise * level.per_hour)
    return (
        level.workers,
        f"{figure(level.per_hour)} ± {noise}",
        f"{level.median_seconds:.3g}",
        f"{efficiency(level, first, fit):.0%}",
        figure(fit.law.throughput(level.workers)),
        fit.regime(level.workers),
    )


def efficiency(level: Swept, first: Swept, fit: Fit) -> float:
    """Throughput per worker, of that of one worker: measured, or else by the law."""
    one = first.per_hour if first.workers == 1 else fit.law.one
    return level.per_hour / level.workers / one


def _in_words(fit: Fit) -> list[str]:
    law = fit.law
    said = (
        f"X(N) = {figure(law.one)} N / (1 + {law.contention:.3g} (N-1) + "
        f"{law.coherency:.3g} N (N-1)) an hour: contention sigma = "
        f"{law.contention:.3g}, coherency kappa = {law.coherency:.3g}, residual {fit.residual:.1%}."
    )
    if fit.optimum is None:
        return [said, f"Untold: {'; '.join(fit.untold)}."]
    peak = "none: more workers always do more" if isinf(fit.optimum) else f"{fit.optimum:.3g}"
    return [said, f"Optimum N* = {peak}.", *(f"Untold: {one}." for one in fit.untold)]


def _warnings(levels: list[Swept], fit: Fit) -> list[str]:
    lines = []
    worse = [level.workers for level in levels if fit.regime(level.workers) == "retrograde"]
    if worse:
        lines.append(
            f"\nRetrograde from {worse[0]} workers on: they do less together than fewer would."
        )
    left_out = sum(level.left_out for level in levels)
    if left_out:
        lines.append(f"\n{left_out} evaluations failed or were interrupted: they do not count.")
    return lines


def as_document(levels: list[Swept], fit: Fit, devices: int) -> dict[str, Any]:
    """The same as one document. What cannot be told, or is infinite, is null."""
    law, optimum = fit.law, fit.optimum
    return {
        "levels": [
            {
                "workers": level.workers,
                "evaluations": level.evaluations,
                "left_out": level.left_out,
                "evaluations_per_hour": level.per_hour,
                "noise": level.level.noise,
                "median_seconds": level.median_seconds,
                "efficiency": efficiency(level, levels[0], fit),
                "fitted_per_hour": law.throughput(level.workers),
                "regime": fit.regime(level.workers),
                "directory": str(level.directory),
            }
            for level in levels
        ],
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "residual": fit.residual,
        "optimum": None if optimum is None or isinf(optimum) else optimum,
        "optimum_is_told": optimum is not None,
        "untold": list(fit.untold),
        "noise": fit.noise,
        "recommended_workers": fit.recommended(devices),
        "retrograde": [x.workers for x in levels if fit.regime(x.workers) == "retrograde"],
    }
