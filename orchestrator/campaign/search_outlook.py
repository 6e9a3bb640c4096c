"""What a campaign of searches would take: each as its own plan has it, one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from budgets.plain import plain
from budgets.table import table
from budgets.words import duration, number
from orchestrator.campaign.searches import SearchCell
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.planning.configured import conduct_of, request_of
from orchestrator.planning.page import TierPage, circumstances, page_of


@dataclass(frozen=True)
class ExpectedSearch:
    """One search, and what it is expected to take; hours are None where no time is known."""

    run_id: str
    control: bool
    evaluations: int  # of the search and its verdict, without the rung
    hours: float | None  # wall clock, half of the times no more
    device_hours: float | None
    cost: float | None


def expected_searches(cells: Sequence[SearchCell], slots: Slots) -> Iterator[ExpectedSearch]:
    """One for each cell, in their order; the engine starts once, before the first.

    Raises ValueError where one cannot be planned.
    """
    for place, cell in enumerate(cells):
        request = request_of(cell.resolved)
        root = conduct_of(cell.resolved, as_json=False).root
        assumed = cell.resolved.evaluation.assume_eval_seconds
        under, _ = circumstances(root, request.objective, devices_of(slots), assumed)
        if place:
            started = replace(under.times.overheads, startup_seconds=0.0)
            under = replace(under, times=replace(under.times, overheads=started))
        yield _expected(cell, page_of(request, under, (request.tier,)).tiers[0])


def _expected(cell: SearchCell, page: TierPage) -> ExpectedSearch:
    took = page.forecast
    return ExpectedSearch(
        run_id=cell.run_id,
        control=cell.control,
        evaluations=page.plan.resolved.evaluations + page.verdict_evaluations,
        hours=None if took is None else took.hours_p50,
        device_hours=None if took is None else took.device_hours_p50,
        cost=page.cost,
    )


def as_dict(searches: Sequence[ExpectedSearch]) -> dict[str, Any]:
    """All of them, and together."""
    return {
        "searches": [vars(one) for one in searches],
        "hours": _sum(one.hours for one in searches),
        "device_hours": _sum(one.device_hours for one in searches),
        "cost": _sum(one.cost for one in searches),
    }


def to_markdown(searches: Sequence[ExpectedSearch]) -> Iterator[str]:
    """A row for each, and what they take together."""
    yield from ("## What it would take", "")
    columns = ("search", "type", ">evaluations", ">wall clock", ">device-hours")
    yield from table(columns, map(_row, searches))
    hours, device = _sum(o.hours for o in searches), _sum(o.device_hours for o in searches)
    if hours is None or device is None:
        yield from ("", "No estimate of all of them: not every one is calibrated or has a prior.")
    else:
        yield from ("", f"One after the other: about {_time(hours)}, {device:.3g} device-hours.")


def _row(one: ExpectedSearch) -> tuple[object, ...]:
    kind = "control" if one.control else "run"
    device_hours = number(one.device_hours, 3, "?")
    return plain(one.run_id), kind, one.evaluations, _time(one.hours), device_hours


def _time(hours: float | None) -> str:
    return "no estimate" if hours is None else duration(3600 * hours)


def _sum(values: Iterator[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
