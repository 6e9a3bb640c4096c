"""What was planned, reserved, spent, wasted and idle, in all and by generation."""

from collections.abc import Iterable, Iterator

from budgets.blocks import Items, Table, Text
from budgets.report.markdown import balances, evaluation_lines, notes, timing_lines
from orchestrator.report.contents.blocks import Block, Figure
from orchestrator.report.generations import START_UP
from orchestrator.report.model import Report
from orchestrator.report.plots.spending import BESIDE, bars_of

CAPTION = "Each currency: what is spent, set aside for what is in flight, and left"

IN_SECONDS_BELOW = 1.0
"""Device-hours in all: less is told in device-seconds."""


def budget(report: Report, figures: list[Figure]) -> list[Block]:
    """The section."""
    own = report.budget
    return [
        balances(own, CAPTION, "currency"),
        Items([*evaluation_lines(own), *timing_lines(own.timing), *notes(own)]),
        *figures,
        *_by_generation(report),
    ]


def _by_generation(report: Report) -> Iterator[Block]:
    bars = sorted(bars_of(report), key=lambda bar: bar.name != START_UP)
    if not bars:
        yield Text("No slot has been there yet: the run was not begun.")
        return
    rows = [(bar.planned, bar.useful, bar.wasted, bar.idle, bar.reserved) for bar in bars]
    whole = [_sum(column) for column in zip(*rows, strict=True)]
    is_short = sum(bar.whole - bar.reserved for bar in bars) < IN_SECONDS_BELOW
    scale, unit = (3600.0, "device-seconds") if is_short else (1.0, "device-hours")
    own = [(bar.name, row) for bar, row in zip(bars, rows, strict=True)]
    yield Table(
        f"Where {unit} went: useful gave a score, wasted gave none, idle is what nothing ran in",
        ["part", ">planned", ">useful", ">wasted", ">idle", ">reserved"],
        [[name, *_cells(row, scale)] for name, row in [*own, ("**in all**", whole)]],
    )
    if report.arms and any(bar.planned is not None for bar in bars):
        yield Text(BESIDE)


def _sum(hours: Iterable[float | None]) -> float | None:
    known = [own for own in hours if own is not None]
    return sum(known) if known else None


def _cells(hours: Iterable[float | None], scale: float) -> Iterator[str]:
    return ("-" if own is None else f"{scale * own:.4g}" for own in hours)
