"""A campaign whose cells are searches: each a run of its own, with its share of the budget."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.campaign.cells import campaign_name, campaign_of, runs_of
from orchestrator.config.document import Values
from orchestrator.config.resolve import Resolved, resolve
from orchestrator.planning.request import check_run_id

SHARED = ("max_evals", "max_device_hours", "max_hours", "max_cost")
"""Caps of a campaign, of which each search has an equal part."""


@dataclass(frozen=True)
class SearchCell:
    """One search of a campaign."""

    condition: str
    seed: int
    control: bool
    resolved: Resolved

    @property
    def run_id(self) -> str:
        run_id = self.resolved.search.run_id
        assert run_id is not None, "a cell has a name"
        return run_id


def search_cells(resolved: Resolved) -> tuple[SearchCell, ...]:
    """Every search of the campaign, in its order.

    Raises ValueError, naming the cell, where one cannot be.
    """
    runs = list(runs_of(resolved))
    share = dict(_shares(resolved, len(runs)))
    name = campaign_name(resolved)
    cells: list[SearchCell] = []
    for cell, seed, run in runs:
        run_id = re.sub(r"[+=]", "-", f"{name}.{run}".lower())
        check_run_id(run_id, f"condition {cell.name}: its run's name")
        if run_id in (other.run_id for other in cells):
            raise ValueError(f"two searches would be called {run_id!r}: rename a condition")
        own: Values = {**cell.settings, **share, "search.run_id": run_id, "search.seed": seed}
        one = resolve(replace(resolved.given, cell=(cell.name, own)))
        one.objective  # noqa: B018 - what it cannot be is said now
        cells.append(SearchCell(cell.name, seed, cell.control, one))
    return tuple(cells)


def _shares(resolved: Resolved, runs: int) -> Iterator[tuple[str, Any]]:
    """Each cap divided by the number of searches, a whole number of evaluations.

    Raises ValueError on a window of hours: it would begin anew with each search.
    """
    budget = resolved.budget
    if budget.window is not None and budget.window.strip()[-1:] in "smhd":
        raise ValueError(
            f"[budget] window: expected a moment such as 2026-11-27T18:00 for a campaign of "
            f"searches, one after the other, got {budget.window!r}"
        )
    for name in SHARED:
        cap = getattr(budget, name)
        if cap is None:
            continue
        part = cap // runs if name == "max_evals" else cap / runs
        if not part:
            raise ValueError(f"[budget] {name}: {cap} cannot be shared by {runs} searches")
        yield f"budget.{name}", part


def campaign_directory(root: Path, resolved: Resolved) -> Path:
    """Where what is said of the whole campaign lies."""
    campaign_of(resolved)
    return root / "campaign" / campaign_name(resolved)
