"""What was planned, reserved, spent, wasted and idle, in all and by generation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from budgets.blocks import Column, Items, Table, Text, names
from budgets.report.markdown import amount, evaluation_lines, notes, timing_lines
from budgets.report.model import Balance
from orchestrator.report.contents.blocks import Block
from orchestrator.report.contents.figures import Figures
from orchestrator.report.model import Report
from orchestrator.report.plots.spending import BESIDE

IN_SECONDS_BELOW = 1.0
"""Device-hours in all: less is told in device-seconds."""


def budget(report: Report, figures: Figures) -> list[Block]:
    """The section."""
    own = report.budget
    return [
        _balances(report),
        Items([*evaluation_lines(own), *timing_lines(own.timing), *notes(own)]),
        *figures.of("budget"),
        *_by_generation(report),
    ]


def _balances(report: Report) -> Table:
    titles = ("spent", "reserved", "free", "cap")
    rows = [_balance(own) for own in report.budget.balances if own.counts]
    caption = "Each currency: what is spent, set aside for what is in flight, and left"
    return Table(caption, [names("currency"), *map(Column, titles)], rows)


def _balance(own: Balance) -> list[str]:
    values = (own.spent, own.reserved, own.free, own.cap)
    return [own.label, *(amount(own, value) for value in values)]


@dataclass(frozen=True)
class _Row:
    """Device-hours of a part of the run."""

    name: str
    planned: float | None
    useful: float
    wasted: float
    idle: float
    reserved: float = 0.0

    @property
    def all(self) -> float:
        return self.useful + self.wasted + self.idle


def _by_generation(report: Report) -> Iterator[Block]:
    rows = list(_rows(report))
    if not rows:
        yield Text("No slot has been there yet: the run was not begun.")
        return
    is_short = sum(row.all for row in rows) < IN_SECONDS_BELOW
    scale, unit = (3600.0, "device-seconds") if is_short else (1.0, "device-hours")
    titles = ("planned", "useful", "wasted", "idle", "reserved")
    yield Table(
        f"Where {unit} went: useful gave a score, wasted gave none, idle is what nothing ran in",
        [names("part"), *map(Column, titles)],
        [_cells(row, scale) for row in [*rows, _sum(rows)]],
    )
    if report.arms and any(row.planned is not None for row in rows):
        yield Text(BESIDE)


def _rows(report: Report) -> Iterator[_Row]:
    beside = [
        _Row(b.name, None, b.useful_device_hours, b.wasted_device_hours, b.idle_device_hours)
        for b in report.beside
    ]
    yield from (row for row in beside if row.name == "start-up")
    for one in report.generations:
        yield _Row(
            f"generation {one.number}",
            one.planned_device_hours,
            one.useful_device_hours,
            one.wasted_device_hours,
            one.idle_device_hours,
            one.reserved_device_hours,
        )
    yield from (row for row in beside if row.name != "start-up")


def _sum(rows: Sequence[_Row]) -> _Row:
    planned = [row.planned for row in rows if row.planned is not None]
    return _Row(
        "**in all**",
        sum(planned) if planned else None,
        sum(row.useful for row in rows),
        sum(row.wasted for row in rows),
        sum(row.idle for row in rows),
        sum(row.reserved for row in rows),
    )


def _cells(row: _Row, scale: float) -> list[str]:
    values = (row.planned, row.useful, row.wasted, row.idle, row.reserved)
    return [row.name, *("-" if v is None else f"{scale * v:.4g}" for v in values)]
