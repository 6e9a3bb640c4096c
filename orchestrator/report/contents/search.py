"""CMA-ES itself: its step, its axes, how far each knob spreads and which go together."""

from collections.abc import Iterator

from budgets.blocks import Table, Text
from budgets.plain import plain
from orchestrator.report.contents.blocks import Block, Figure, why_none
from orchestrator.report.model import Distribution, Report
from orchestrator.report.plots.distribution import pairs_of

MOST_PAIRS = 5
"""Correlations that are named."""


def search(report: Report, figures: list[Figure]) -> list[Block]:
    """The section, or why there is none."""
    found = report.distribution
    if found is None:
        return [why_none(report.no_distribution)]
    return [
        Text(
            "CMA-ES draws candidates from a normal distribution over the knobs, and moves and "
            "reshapes it by their scores. Its step size says how far it looks; an axis ratio above "
            "1 that it has learned to look further in one direction than in another. Standard "
            "deviations (sd) are in units of a knob's range."
        ),
        *figures,
        *_steps(found),
        *_pairs(report, found),
    ]


def _steps(found: Distribution) -> Iterator[Block]:
    last = found.history[-1] if found.history else None
    if last is None:
        return
    chance = ""
    if found.condition_by_chance is not None:
        chance = (
            f" Its longest axis has {_condition(found):.3g} times the variance of the shortest; on "
            f"pure noise one search of this size in twenty reaches more than "
            f"{found.condition_by_chance:.3g}."
        )
    yield Text(
        f"After generation {last.generation} the step size is {last.sigma:.3g} and the axis ratio "
        f"{last.axis_ratio:.3g}.{chance}"
    )


def _condition(found: Distribution) -> float:
    lowest = found.eigenvalues[-1]
    return found.eigenvalues[0] / lowest if lowest else float("inf")


def _pairs(report: Report, found: Distribution) -> Iterator[Block]:
    pairs = pairs_of(found, [knob.name for knob in report.knobs])
    if not pairs:
        return
    limit = found.correlation_by_chance
    yield Table(
        "Knobs that go together the most",
        ["two knobs", ">correlation", "beyond chance"],
        [
            [f"{plain(a)} and {plain(b)}", f"{r:+.2f}", _beyond(r, limit)]
            for r, a, b in pairs[:MOST_PAIRS]
        ],
    )
    if limit is not None:
        yield Text(
            f"On pure noise one search of this size in twenty has a correlation beyond {limit:.2f}."
        )


def _beyond(value: float, limit: float | None) -> str:
    if limit is None:
        return "-"
    return "yes" if abs(value) > limit else "no"
