"""All runs of a campaign before any of them is paid: what varies, names, and how many there are."""

from collections.abc import Iterator, Sequence
from typing import Any

from budgets.plain import plain
from budgets.table import table
from orchestrator.campaign.cells import (
    campaign_name,
    campaign_of,
    cells_of,
    runs_of,
    terms_of,
)
from orchestrator.campaign.conditions import Cell, factors_of
from orchestrator.campaign.searches import search_cells
from orchestrator.config import Config, as_shown
from orchestrator.planning.configured import request_of


def check(resolved: Config) -> None:
    """Raises ValueError, naming the cell, unless the campaign could be begun."""
    if campaign_of(resolved).cell == "training":
        terms_of(resolved)
        return
    for cell in search_cells(resolved):
        request_of(cell.resolved)


def as_dict(resolved: Config) -> dict[str, Any]:
    """The campaign as JSON."""
    campaign, cells = campaign_of(resolved), cells_of(resolved)
    return {
        "name": campaign_name(resolved),
        "cell": campaign.cell,
        "design": design(resolved),
        "total_runs": len(cells) * len(campaign.seeds),
        "conditions": [
            {
                "name": cell.name,
                "settings": dict(cell.settings),
                "levels": dict(cell.levels),
                "control": cell.control,
            }
            for cell in cells
        ],
        "seeds": list(campaign.seeds),
        "runs": [name for _, _, name in runs_of(resolved)],
    }


def design(resolved: Config) -> str:
    """`2x2 factorial`, `3 conditions`, or both."""
    campaign, factors = campaign_of(resolved), factors_of(resolved.factors)
    parts = []
    if factors:
        parts.append(f"{'x'.join(str(len(factor.levels)) for factor in factors)} factorial")
    if campaign.conditions:
        parts.append(f"{len(campaign.conditions)} conditions")
    return " and ".join(parts)


def to_markdown(resolved: Config) -> Iterator[str]:
    """The plan of all runs, as a person reads it."""
    campaign, cells = campaign_of(resolved), cells_of(resolved)
    controls, seeds = sum(cell.control for cell in cells), len(campaign.seeds)
    yield from ("## All runs", "")
    yield (
        f"{plain(campaign_name(resolved))}: {design(resolved)}, {len(cells)} conditions "
        f"({controls} of them controls) on {seeds} seeds = {len(cells) * seeds} "
        f"{'searches' if campaign.cell == 'search' else 'evaluations'}."
    )
    factors = [factor.name for factor in factors_of(resolved.factors)]
    columns = (">#", "condition", *map(plain, factors), "sets", "type")
    yield from ("", *table(columns, (_row(*cell, factors) for cell in enumerate(cells, 1))))
    first = next(runs_of(resolved))[2]
    yield from (
        "",
        f"Seeds: {', '.join(map(str, campaign.seeds))}. A run is called {plain(first)}.",
    )


def _row(number: int, cell: Cell, factors: Sequence[str]) -> tuple[object, ...]:
    levels = [cell.levels.get(name, "-") for name in factors]
    sets = ", ".join(f"{key} = {as_shown(value)}" for key, value in cell.settings.items()) or "-"
    return number, *map(plain, (cell.name, *levels, sets)), "control" if cell.control else "run"
